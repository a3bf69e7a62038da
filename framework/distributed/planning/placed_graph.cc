// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/planning/placed_graph.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/graph/function_calls.h"

namespace treenail {
namespace {

// By which tasks know it: two makers of one name make handles of one state.
std::string name_of_state(const Node& maker) {
  std::string name = maker.original_name(), container;
  const OpDef& def = maker.op().def();
  for (size_t i = 0; i < def.attrs.size(); ++i) {
    if (def.attrs[i].kind != AttrKind::kString) continue;
    const std::string& given = maker.op().attr(static_cast<int>(i)).get<std::string>();
    if (def.attrs[i].name == "container") container = given;
    if (def.attrs[i].name == "shared_name" && !given.empty()) name = given;
  }
  return concat(container, "/", name);
}

// Of a loop whose body gives argument i as it is.
bool hands_on(const Node& node, int i, const FunctionFacts& facts) {
  if (node.type() != "While" && node.type() != "StatelessWhile") return false;
  const Function* const body = facts.find(node.op().get<FunctionAttr>("body").name);
  const auto at = static_cast<size_t>(i);
  return body != nullptr && at < body->output_values.size() && at < body->input_nodes.size() &&
         body->body->find_output(body->output_values[at]) ==
             body->body->find_output(body->input_nodes[at]);
}

class Orderer {
 public:
  Orderer(PlacedGraph& placed, const std::unordered_set<const Node*>& awaited, bool whole)
      : placed_(placed), awaited_(awaited), whole_(whole) {}

  void run() {
    for (Node* node : topological_order(placed_.graph)) {
      poll_interrupt();
      for (int i = 0; i < node->op().num_inputs(); ++i) {
        const Access access = access_of(*node, i);
        if (access != Access::kRead && access != Access::kWrite) continue;
        const StateSource source = placed_.source_of(node->input(i));
        if (source.maker == nullptr) continue;
        home_ = source.part;
        Accesses& accesses = accesses_[name_of_state(*source.maker)];
        if (accesses.last_write != nullptr) edge(*accesses.last_write, *node);
        if (access == Access::kRead) {
          accesses.reads.push_back(node);
        } else {
          for (Node* reader : accesses.reads) edge(*reader, *node);
          accesses.reads.clear();
          accesses.last_write = node;
        }
      }
    }
  }

 private:
  struct Accesses {
    Node* last_write = nullptr;
    std::vector<Node*> reads;  // since last_write
  };

  Access access_of(const Node& node, int i) const {
    const OpInstance& op = node.op();
    const Access declared = op.input_def(i).access;
    if (declared != Access::kNone || op.input_type(i) != DType::kResource || !calls_functions(op))
      return declared;
    const int first = first_argument(op);
    return i < first ? declared : placed_.facts.argument_access(op, i - first);
  }

  void edge(Node& before, Node& after) {
    if (&before == &after) return;
    const bool seen = placed_.part_of(before) == home_ && placed_.part_of(after) == home_;
    if (whole_ && seen) return;
    Node* const end = end_of(before);
    if (end != nullptr) placed_.graph.add_control_edge_unchecked(after, *end);
  }

  // An edge that says no more than "later" must not look like one that asks for all that a call
  // does: it leaves what reads a result. Null: the call does nothing.
  Node* end_of(Node& node) {
    if (!calls_functions(node.op()) || awaited_.contains(&node)) return &node;
    Node*& end = ends_[&node];
    for (int i = 0; i < node.num_outputs() && end == nullptr; ++i) {
      const Output result{&node, i};
      if (!placed_.is_wanted(result, awaited_)) continue;
      const NamedAttrs attrs = {{"T", node.op().output_type(i)}};
      end = &placed_.graph.add({.op = "Identity",
                                .name = concat(node.original_name(), "/_end"),
                                .inputs = std::span(&result, 1),
                                .attrs = attrs});
      placed_.graph.set_origin(*end, node);
      placed_.set_part(*end, placed_.places[static_cast<size_t>(node.id())], placed_.part_of(node));
    }
    return end;
  }

  PlacedGraph& placed_;
  const std::unordered_set<const Node*>& awaited_;
  const bool whole_;
  int32_t home_ = -1;  // of the state in question
  std::map<std::string, Accesses> accesses_;
  std::unordered_map<const Node*, Node*> ends_;
};

}  // namespace

int first_argument(const OpInstance& op) {
  return op.input_range(static_cast<int>(op.def().inputs.size()) - 1).first;
}

void PlacedGraph::set_part(const Node& node, int32_t place, int32_t part) {
  const auto at = static_cast<size_t>(node.id());
  if (parts.size() <= at) {
    parts.resize(at + 1);
    places.resize(at + 1);
  }
  parts[at] = part;
  places[at] = place;
}

StateSource PlacedGraph::source_of(Output value) const {
  for (;;) {
    const Node& node = *value.node;
    if (node.op().output_type(value.index) != DType::kResource) return {};
    if (const auto known = arguments.find(&node); known != arguments.end()) return known->second;
    if (hands_on(node, value.index, facts)) {
      value = node.input(value.index);
    } else if (node.op().def().view_of >= 0) {
      value = node.input(node.op().def().view_of);
    } else if (node.inputs().empty() && node.num_outputs() == 1 && node.type() != "_Arg" &&
               node.type() != "Placeholder") {
      return {&node, places[static_cast<size_t>(node.id())], part_of(node)};
    } else {
      return {};
    }
  }
}

std::unordered_set<const Node*> PlacedGraph::awaited() const {
  std::unordered_set<const Node*> found;
  const auto note = [&](const Node* node) {
    if (node->op().def().stateful) found.insert(node);
  };
  for (int id = 0; id < graph.num_nodes(); ++id)
    if (const Node* const node = graph.node(id))
      std::ranges::for_each(node->control_inputs(), note);
  std::ranges::for_each(targets, note);
  return found;
}

bool PlacedGraph::is_wanted(const Output& output,
                            const std::unordered_set<const Node*>& awaited) const {
  return awaited.contains(output.node) || is_read(output) ||
         std::ranges::find(fetches, output) != fetches.end();
}

void order_state_accesses(PlacedGraph& placed, const std::unordered_set<const Node*>& awaited,
                          bool whole) {
  Orderer(placed, awaited, whole).run();
}

}  // namespace treenail
