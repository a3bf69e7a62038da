// SPDX-License-Identifier: Apache-2.0
// A program's graph as a master places it and cuts pieces from it: a copy of what the program
// needs, in which calls have given way to what they call.
#pragma once

#include <memory>
#include <vector>

#include "framework/distributed/protocol.h"
#include "framework/graph/graph.h"

namespace treenail {

struct WholeProgram {
  // `merged`: without equal subexpressions. Errors: as graph_from_bytes, and for names that the
  // graph does not have; ResourceExhausted for more than `most_nodes`, those of functions included.
  WholeProgram(const protocol::Program& program, bool merged, int64_t most_nodes);

  std::unique_ptr<Graph> given;
  Graph graph{Graph::Names::kAny};
  std::vector<Output> feeds;  // by the program's feed; none where nothing needs it
  std::vector<Output> fetches;
  std::vector<Node*> targets;

 private:
  void copy(const protocol::ProgramValues& needed);
  void merge();
  void make_ends_differ();
};

}  // namespace treenail
