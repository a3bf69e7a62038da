// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/planning/whole_program.h"

#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/graph/passes/cse.h"
#include "framework/graph/serialize.h"
#include "framework/runtime/plan/graph_copier.h"

namespace treenail {
namespace {

Output stand_in(Graph& graph, const Output& fed) {
  const NamedAttrs attrs = {{"dtype", fed.node->op().output_type(fed.index)},
                            {"shape", fed.node->info(fed.index).shape}};
  Node& node =
      graph.add({.op = "Placeholder", .name = fed.node->name(), .inputs = {}, .attrs = attrs});
  graph.set_origin(node, *fed.node);
  return {&node, 0};
}

void check_nodes(const Graph& graph, int64_t most) {
  int64_t nodes = graph.num_nodes();
  for (const auto& [name, function] : graph.functions()) nodes += function->body->num_nodes();
  if (nodes <= most) return;
  throw error_of(Code::kResourceExhausted,
                 {"the run needs ", nodes, " nodes, with those of functions; this server takes ",
                  most, " (--max-nodes)"});
}

}  // namespace

WholeProgram::WholeProgram(const protocol::Program& program, bool merged, int64_t most_nodes)
    : given(graph_from_bytes(program.graph)) {
  check_nodes(*given, most_nodes);
  copy(protocol::values_of(program, *given));
  if (merged) merge();
  if (program.in_parts) make_ends_differ();
}

void WholeProgram::copy(const protocol::ProgramValues& needed) {
  feeds.resize(needed.feeds.size());
  const FunctionFacts facts(given->functions(), false);
  GraphCopier::Calls calls{&facts};
  const auto feed = [&](size_t i) {
    if (feeds[i].node == nullptr) feeds[i] = stand_in(graph, needed.feeds[i]);
    return feeds[i];
  };
  GraphCopier copier(*given, needed.feeds, graph, calls, feed);
  for (const Output& fetch : needed.fetches) copier.need(fetch);
  for (const Node* target : needed.targets) copier.need(*target);
  copier.copy_needed();
  for (const Output& fetch : needed.fetches) fetches.push_back(copier.copy_of(fetch));
  for (const Node* target : needed.targets) targets.push_back(copier.copy_of(*target));
  graph.functions() = given->functions();
}

void WholeProgram::merge() {
  std::vector<Node*> keep = targets;
  for (const Output& value : fetches) keep.push_back(value.node);
  for (const Output& value : feeds)
    if (value.node != nullptr) keep.push_back(value.node);
  merge_common_subexpressions(graph, keep);
}

// In a run in parts each fetch and each target is asked for by itself, so no two may be one.
void WholeProgram::make_ends_differ() {
  std::set<std::pair<const Node*, int>> fetched;
  for (Output& fetch : fetches) {
    if (fetched.emplace(fetch.node, fetch.index).second) continue;
    const NamedAttrs attrs = {{"T", fetch.node->op().output_type(fetch.index)}};
    fetch = {&graph.add({.op = "Identity",
                         .name = concat(fetch.node->name(), "/_again"),
                         .inputs = std::span(&fetch, 1),
                         .attrs = attrs,
                         .device = fetch.node->device()}),
             0};
  }
  std::set<const Node*> run;
  for (Node*& target : targets) {
    if (run.insert(target).second) continue;
    Node* const before[] = {target};
    target = &graph.add({.op = "NoOp",
                         .name = concat(target->name(), "/_again"),
                         .inputs = {},
                         .attrs = {},
                         .control_inputs = before,
                         .device = target->device()});
  }
}

}  // namespace treenail
