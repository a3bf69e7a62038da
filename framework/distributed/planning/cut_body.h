// SPDX-License-Identifier: Apache-2.0
// Cutting a function's body whose nodes are placed on several tasks. One task calls it: its own
// nodes stay in the body, and in place of those of another stand calls of pieces (_RunPiece), each
// of which has what that task can run at one go: what is between it and what comes after other
// tasks' nodes is another piece. What may have to wait, and what calls functions, is a piece by
// itself, so that no value waits for it that does not depend on it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/distributed/planning/placed_graph.h"
#include "framework/graph/function.h"
#include "framework/placement/partition.h"
#include "framework/runtime/kernel/kernel_exchange.h"

namespace treenail {

// Gives a piece to its task.
using GivePiece = FunctionRef<PieceAt(int32_t part, const Piece& piece)>;

struct BodyToCut {
  const PlacedGraph& placed;        // fetches: the results that are wanted
  const Graph& library;             // has the functions that are called
  int32_t caller;                   // the task that calls it
  const Function& function;         // as it was
  std::span<Node* const> args;      // by argument, its node; null where nothing needs it
  const std::vector<bool>& remote;  // by argument, whether it is a handle of another task's state
  // By result, the number of the fetch; -1: it is not wanted.
  std::span<const int> results;
  std::string path;                    // of the calls around, which random operations count by
  std::span<const std::string> names;  // of the tasks
};

// The function as `caller` calls it: handles of other tasks have become truth values, without a
// meaning. Errors: Unimplemented for a value that cannot leave its task, naming the node; what
// `give` throws.
std::shared_ptr<Function> cut_body(const BodyToCut& body, const std::string& name, GivePiece give);

}  // namespace treenail
