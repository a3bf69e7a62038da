// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/partition.h"

#include <map>
#include <tuple>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/graph/import.h"

namespace treenail {
namespace {

class Partitioner {
 public:
  Partitioner(const WholeGraph& whole, std::span<const int32_t> parts,
              std::span<const std::string> names, DType sent_as)
      : whole_(whole), parts_(parts), names_(names), sent_as_(sent_as), pieces_(names.size()) {
    for (Piece& piece : pieces_) piece.graph = std::make_unique<Graph>();
    copies_.resize(static_cast<size_t>(whole.graph.num_nodes()));
  }

  std::vector<Piece> run() {
    for (Node* node : topological_order(whole_.graph)) {
      poll_interrupt();
      if (!stands_anywhere(*node)) copies_[index(*node)] = &add(*node, part_of(*node));
    }
    note_ends();
    for (Piece& piece : pieces_) copy_called_functions(whole_.graph, *piece.graph);
    return std::move(pieces_);
  }

 private:
  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  int32_t part_of(const Node& node) const { return parts_[index(node)]; }
  Graph& graph_of(int32_t part) { return *pieces_[static_cast<size_t>(part)].graph; }
  const std::string& name_of(int32_t part) const { return names_[static_cast<size_t>(part)]; }

  // It costs less to have it twice than to send it.
  static bool stands_anywhere(const Node& node) {
    return node.type() == "Placeholder" ||
           (node.type() == "Const" && node.control_inputs().empty());
  }

  Node& add(const Node& node, int32_t part) {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs()) inputs.push_back(value_in(input, part));
    std::vector<Node*> before;
    for (Node* each : node.control_inputs()) before.push_back(node_in(*each, part));
    return import_node(graph_of(part), node, node.original_name(), inputs, before);
  }

  Output value_in(const Output& value, int32_t part) {
    if (stands_anywhere(*value.node)) return {anywhere(*value.node, part), value.index};
    if (part_of(*value.node) != part) return received(value, part);
    return {copies_[index(*value.node)], value.index};
  }

  // Of a node of another part, what comes when it is done.
  Node* node_in(Node& node, int32_t part) {
    if (stands_anywhere(node)) return anywhere(node, part);
    if (part_of(node) == part) return copies_[index(node)];
    return received({&node, kDone}, part).node;
  }

  Node* anywhere(const Node& node, int32_t part) {
    Node*& known = anywhere_[{node.id(), part}];
    if (known != nullptr) return known;
    known = &add(node, part);
    // What it asks for is for where it was placed.
    graph_of(part).set_device(*known, "");
    graph_of(part).set_colocated(*known, {});
    return known;
  }

  Output received(const Output& value, int32_t part) {
    Node*& known = received_[{value.node->id(), value.index, part}];
    if (known == nullptr) known = &add_pair(value, part);
    return {known, 0};
  }

  Node& add_pair(const Output& value, int32_t part) {
    const Node& node = *value.node;
    const int32_t from = part_of(node);
    const bool only_done = value.index == kDone;
    const DType type = only_done ? DType::kBool : node.op().output_type(value.index);
    if (!is_plain(type) && type != DType::kString) refuse(node, type, part);
    const std::string key = concat(node.original_name(), only_done ? "" : concat(":", value.index),
                                   ";", name_of(from), ";", name_of(part));
    const bool rounded = type == DType::kFloat32 && sent_as_ != DType::kInvalid;
    const DType sent = rounded ? sent_as_ : type;
    add_send(value, part, sent, key);
    const PartialShape shape = only_done ? PartialShape(Shape()) : node.info(value.index).shape;
    const NamedAttrs attrs = {{"T", sent}, {"shape", shape}, {"key", key}, {"from", name_of(from)}};
    const std::string name = concat(node.original_name(), "/_recv");
    Node& received = graph_of(part).add(
        {.op = "_Recv", .name = name, .inputs = {}, .attrs = attrs, .creation = node.creation()});
    return rounded ? add_cast({&received, 0}, sent, type, node) : received;
  }

  // Where no device is asked for, as no other than the CPU need have kernels for it.
  Node& add_cast(const Output& value, DType from, DType to, const Node& origin) {
    const NamedAttrs attrs = {{"SrcT", from}, {"DstT", to}};
    return value.node->graph().add({.op = "Cast",
                                    .name = concat(origin.original_name(), "/_rounded"),
                                    .inputs = std::span(&value, 1),
                                    .attrs = attrs,
                                    .creation = origin.creation()});
  }

  void add_send(const Output& value, int32_t to, DType type, const std::string& key) {
    Graph& graph = graph_of(part_of(*value.node));
    Node* const node = copies_[index(*value.node)];
    const bool only_done = value.index == kDone;
    Output sent = only_done ? Output{done_sign(graph), 0} : Output{node, value.index};
    if (!only_done && value.node->op().output_type(value.index) != type)
      sent = {&add_cast(sent, DType::kFloat32, type, *value.node), 0};
    const Output inputs[] = {sent};
    std::vector<Node*> before;
    if (only_done) before.push_back(node);
    const NamedAttrs attrs = {{"T", type}, {"key", key}, {"to", name_of(to)}};
    const std::string name = concat(value.node->original_name(), "/_send");
    Piece& piece = pieces_[static_cast<size_t>(part_of(*value.node))];
    piece.sends.push_back(&graph.add({.op = "_Send",
                                      .name = name,
                                      .inputs = inputs,
                                      .attrs = attrs,
                                      .control_inputs = before,
                                      .creation = value.node->creation()}));
  }

  Node* done_sign(Graph& graph) {
    Node*& known = done_signs_[&graph];
    if (known != nullptr) return known;
    const NamedAttrs attrs = {{"value", Tensor::scalar(true)}, {"dtype", DType::kBool}};
    known = &graph.add({.op = "Const", .name = "_done", .inputs = {}, .attrs = attrs});
    return known;
  }

  void note_ends() {
    for (size_t i = 0; i < whole_.fetches.size(); ++i) {
      const Output& value = whole_.fetches[i];
      const int32_t part = part_of(*value.node);
      piece(part).fetches.emplace_back(i, value_in(value, part));
    }
    for (size_t i = 0; i < whole_.targets.size(); ++i) {
      Node& node = *whole_.targets[i];
      piece(part_of(node)).targets.emplace_back(i, node_in(node, part_of(node)));
    }
    for (size_t i = 0; i < whole_.feeds.size(); ++i) {
      if (whole_.feeds[i].node == nullptr) continue;
      const int id = whole_.feeds[i].node->id();
      for (auto at = anywhere_.lower_bound({id, 0}); at != anywhere_.end() && at->first.first == id;
           ++at)
        piece(at->first.second).feeds.emplace_back(i, Output{at->second, 0});
    }
  }
  Piece& piece(int32_t part) { return pieces_[static_cast<size_t>(part)]; }

  [[noreturn]] void refuse(const Node& node, DType type, int32_t to) const {
    const std::string created = creation_text(node);
    throw unimplemented(error_prefix(node.type(), node.original_name()), "gives a ", type,
                        " that is read in ", name_of(to), ", and is itself in ",
                        name_of(part_of(node)), ": numbers, truth values and strings pass between ",
                        "tasks; place its readers where it is", created.empty() ? "" : "\n",
                        created);
  }

  static constexpr int kDone = -1;  // instead of the number of an output: that the node is done

  const WholeGraph& whole_;
  const std::span<const int32_t> parts_;
  const std::span<const std::string> names_;
  const DType sent_as_;
  std::vector<Piece> pieces_;
  std::vector<Node*> copies_;                                // by id, in the node's own part
  std::map<std::pair<int, int32_t>, Node*> anywhere_;        // by id and part
  std::map<std::tuple<int, int, int32_t>, Node*> received_;  // by id, output and part
  std::map<const Graph*, Node*> done_signs_;
};

}  // namespace

std::vector<Piece> partition(const WholeGraph& whole, std::span<const int32_t> parts,
                             std::span<const std::string> names, DType sent_as) {
  return Partitioner(whole, parts, names, sent_as).run();
}

}  // namespace treenail
