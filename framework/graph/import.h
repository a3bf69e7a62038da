// SPDX-License-Identifier: Apache-2.0
// Adds the nodes of one graph (loaded from a file, say) to another, under a prefix, with some of
// its values replaced by the other's own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/function_ref.h"
#include "framework/graph/graph.h"

namespace treenail {

struct ImportOptions {
  std::string_view prefix =
      {};  // "model" makes "model/x" of "x"; names stay unique as in Graph::add
  // "x:0" of the imported graph → what its consumers take instead. Nodes all of whose outputs are
  // replaced are left out.
  std::map<std::string, Output, std::less<>> replacements = {};
};

// The new nodes by their names in `from`. Functions come along. The caller holds to.mutex() and
// from.mutex(). Errors: NotFound and InvalidArgument (a replacement of nothing, of another dtype or
// graph), AlreadyExists (a function of that name), and as Graph::add; nodes added before an error
// stay.
std::map<std::string, Node*, std::less<>> import_graph(Graph& to, const Graph& from,
                                                       const ImportOptions& options = {});

// The functions that the nodes of `to` call, and those that these call, as `from` has them.
void copy_called_functions(const Graph& from, Graph& to);

// A node of `to` like `node` of another graph, on these inputs, with its site, its place in the
// program and what is known of its shapes. Errors: as Graph::add.
Node& import_node(Graph& to, const Node& node, std::string_view name,
                  std::span<const Output> inputs, std::span<Node* const> control_inputs);

// Once all of a graph's nodes have been copied to another: who must run beside a node runs beside
// its copy. `copy_of`: null for a name of which there is none, which gets the prefix.
void colocate_copies(const Graph& from, std::string_view prefix,
                     FunctionRef<Node*(const Node&)> copy_of);

}  // namespace treenail
