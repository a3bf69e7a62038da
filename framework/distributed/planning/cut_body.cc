// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/planning/cut_body.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/graph/function_calls.h"
#include "framework/graph/import.h"

namespace treenail {
namespace {

// Nodes that one task runs at one go.
struct Run {
  std::vector<Node*> nodes;     // in canonical order
  std::vector<Output> outputs;  // that others read
  Node* call = nullptr;         // in the caller's body
};
// The level comes first: runs of a lower one are complete before.
using RunKey = std::tuple<int, int32_t, int>;  // level, task, id of a node that is by itself

bool goes_over(DType type) { return is_plain(type) || type == DType::kString; }

class BodyCutter {
 public:
  BodyCutter(const BodyToCut& body, GivePiece give)
      : body_(body),
        placed_(body.placed),
        give_(give),
        made_(std::make_shared<Graph>()),
        levels_(static_cast<size_t>(placed_.graph.num_nodes()), -1),
        copies_(levels_.size()),
        run_of_(levels_.size()) {}

  std::shared_ptr<Function> cut(const std::string& name) {
    auto function = std::make_shared<Function>();
    function->name = name;
    function->doc = body_.function.doc;
    function->inputs = body_.function.inputs;
    function->outputs = body_.function.outputs;
    add_arguments(*function);
    order_ = topological_order(placed_.graph);
    for (const Node* node : order_) find_level(*node);
    find_runs();
    add_nodes();
    add_results(*function);
    function->body = made_;
    return function;
  }

 private:
  static size_t index(const Node& node) { return static_cast<size_t>(node.id()); }
  bool is_callers(const Node& node) const { return placed_.part_of(node) == body_.caller; }
  const std::string& name_of(int32_t part) const { return body_.names[static_cast<size_t>(part)]; }

  static bool stands_anywhere(const Node& node) {
    return node.type() == "Const" && node.control_inputs().empty();
  }
  // A handle of another task's state: made anew by the pieces that read it.
  bool is_handle(const Node& node) const {
    if (node.num_outputs() != 1 || node.op().output_type(0) != DType::kResource) return false;
    const StateSource source = placed_.source_of({const_cast<Node*>(&node), 0});
    return source.maker != nullptr && source.part != body_.caller;
  }
  static bool is_by_itself(const Node& node) {
    return node.op().def().asynchronous || calls_functions(node.op());
  }

  // What the node comes after, in data or control: nodes that are in a piece or in the body.
  template <class F>
  void each_before(const Node& node, F&& f) const {
    const auto note = [&](Node* before) {
      if (stands_anywhere(*before)) return;
      if (is_handle(*before)) return each_before(*before, f);
      f(*before);
    };
    for (const Output& input : node.inputs()) note(input.node);
    for (Node* before : node.control_inputs()) note(before);
  }

  // Rises from task to task along every path, so that no two runs wait for each other.
  void find_level(const Node& node) {
    int level = is_callers(node) ? -1 : 0;
    each_before(node, [&](const Node& before) {
      const bool same = placed_.part_of(before) == placed_.part_of(node);
      const bool apart = !is_callers(node) && (is_by_itself(node) || is_by_itself(before));
      level = std::max(level, levels_[index(before)] + (same && !apart ? 0 : 1));
    });
    levels_[index(node)] = level;
  }

  void find_runs() {
    for (Node* node : order_) {
      if (stands_anywhere(*node) || is_handle(*node) || is_callers(*node)) continue;
      const RunKey key{levels_[index(*node)], placed_.part_of(*node),
                       is_by_itself(*node) ? node->id() : -1};
      Run& run = runs_[key];
      run.nodes.push_back(node);
      run_of_[index(*node)] = &run;
    }
    for (const Node* node : order_) {
      for (const Output& input : node->inputs()) note_output(input, run_of_[index(*node)]);
    }
    for (const Output& fetch : placed_.fetches) note_output(fetch, nullptr);
  }

  void note_output(const Output& value, const Run* reader) {
    Run* const run = run_of_[index(*value.node)];
    if (run == nullptr || run == reader) return;
    if (std::ranges::find(run->outputs, value) == run->outputs.end()) run->outputs.push_back(value);
  }

  void add_arguments(Function& function) {
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      FunctionArg& arg = function.inputs[i];
      if (body_.remote[i]) {
        arg.dtype = DType::kBool;
        arg.shape = PartialShape(Shape());
      }
      const NamedAttrs attrs = {{"dtype", arg.dtype}, {"shape", arg.shape}};
      const std::string_view wanted = body_.function.input_nodes[i];
      Node& node = made_->add({.op = "Placeholder",
                               .name = wanted.substr(0, wanted.find(':')),
                               .inputs = {},
                               .attrs = attrs});
      function.input_nodes.push_back(to_text({&node, 0}));
      args_.push_back(&node);
      if (body_.args[i] == nullptr) continue;
      copies_[index(*body_.args[i])] = &node;
      const auto& handle = body_.args[i]->info(0).handle;
      if (!body_.remote[i] && handle != nullptr) made_->set_handle({&node, 0}, *handle);
    }
  }

  void add_nodes() {
    std::vector<Node*> own;
    for (Node* node : order_) {
      if (is_callers(*node) && !stands_anywhere(*node) && !is_handle(*node)) own.push_back(node);
    }
    std::ranges::stable_sort(own, {}, [&](const Node* node) { return levels_[index(*node)]; });
    auto next = own.begin();
    const auto add_own = [&](int last) {
      for (; next != own.end() && levels_[index(**next)] <= last; ++next) add_own_node(**next);
    };
    for (auto& [key, run] : runs_) {
      poll_interrupt();
      add_own(std::get<0>(key) - 1);
      add_call(run, std::get<1>(key));
    }
    add_own(std::numeric_limits<int>::max());
  }

  void add_own_node(const Node& node) {
    if (copies_[index(node)] != nullptr) return;  // an argument
    std::vector<Output> inputs;
    for (const Output& input : node.inputs())
      inputs.push_back(value_in_body(input, node, body_.caller));
    std::vector<Node*> before;
    for (Node* each : node.control_inputs()) add_before(*each, before);
    copies_[index(node)] = &import_node(*made_, node, node.original_name(), inputs, before);
  }

  void add_before(const Node& node, std::vector<Node*>& before) const {
    if (stands_anywhere(node)) return;
    if (is_handle(node)) {
      each_before(node, [&](const Node& each) { add_before(each, before); });
      return;
    }
    const Run* const run = run_of_[index(node)];
    Node* const copy = run != nullptr ? run->call : copies_[index(node)];
    if (std::ranges::find(before, copy) == before.end()) before.push_back(copy);
  }

  Output value_in_body(const Output& value, const Node& reader, int32_t part) {
    const Node& node = *value.node;
    if (stands_anywhere(node)) return {constant_in(*made_, node), value.index};
    if (const Run* const run = run_of_[index(node)]) {
      check_goes_over(value, reader, part);
      const auto at = std::ranges::find(run->outputs, value);
      return {run->call, static_cast<int>(at - run->outputs.begin())};
    }
    if (is_handle(node)) refuse(value, reader, part);
    return {copies_[index(node)], value.index};
  }

  Node* constant_in(Graph& graph, const Node& node) {
    Node*& known = constants_[{&graph, node.id()}];
    if (known != nullptr) return known;
    known = &import_node(graph, node, node.original_name(), {}, {});
    graph.set_device(*known, "");
    graph.set_colocated(*known, {});
    return known;
  }

  // --- What another task runs

  struct Making {
    Piece piece;
    int32_t part;
    const Run& run;
    std::vector<Output> given;  // values of the body, by feed
    std::vector<Node*> before;  // in the caller's body
    std::map<std::string, Node*> handles;
    std::map<const Node*, Node*> copies;
  };

  void add_call(Run& run, int32_t part) {
    Making making{{}, part, run, {}, {}, {}, {}};
    making.piece.graph = std::make_unique<Graph>();
    for (const Node* node : run.nodes) add_handles(making, *node);
    for (const Node* node : run.nodes) add_to_piece(making, *node);
    note_ends(making);
    copy_called_functions(body_.library, *making.piece.graph);
    const PieceAt at = give_(part, making.piece);
    std::vector<DType> taken, given;
    std::vector<PartialShape> shapes;
    std::vector<Output> inputs;
    for (const Output& value : making.given) {
      taken.push_back(value.node->op().output_type(value.index));
      inputs.push_back(value_in_body(value, *run.nodes[0], part));
    }
    for (const Output& value : run.outputs) {
      check_goes_over(value, *run.nodes[0], body_.caller);
      given.push_back(value.node->op().output_type(value.index));
      shapes.push_back(value.node->info(value.index).shape);
    }
    const NamedAttrs attrs = {{"Tin", taken},
                              {"Tout", given},
                              {"shapes", shapes},
                              {"task", at.task},
                              {"piece", static_cast<int64_t>(at.number)},
                              {"incarnation", static_cast<int64_t>(at.incarnation)}};
    run.call = &made_->add({.op = "_RunPiece",
                            .name = concat(run.nodes[0]->original_name(), "/_there"),
                            .inputs = inputs,
                            .attrs = attrs,
                            .control_inputs = making.before,
                            .creation = run.nodes[0]->creation()});
  }

  // They go by the names that the state has, before anything else can take these.
  void add_handles(Making& making, const Node& node) {
    for (const Output& input : node.inputs()) {
      const StateSource source = placed_.source_of(input);
      if (source.maker == nullptr || source.part != making.part) continue;
      Node*& known = making.handles[source.maker->original_name()];
      if (known != nullptr) continue;
      known =
          &import_node(*making.piece.graph, *source.maker, source.maker->original_name(), {}, {});
      making.piece.graph->set_colocated(*known, {});
    }
  }

  void add_to_piece(Making& making, const Node& node) {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs()) inputs.push_back(value_in_piece(making, input, node));
    std::vector<Node*> before;
    for (const Node* each : node.control_inputs()) {
      const auto copy = making.copies.find(each);
      if (copy != making.copies.end()) {
        before.push_back(copy->second);
      } else {
        add_before(*each, making.before);
      }
    }
    const std::string& name = node.original_name();
    making.copies[&node] =
        &import_node(*making.piece.graph, node,
                     node.op().def().random ? concat(body_.path, name) : name, inputs, before);
  }

  Output value_in_piece(Making& making, const Output& value, const Node& reader) {
    const auto copy = making.copies.find(value.node);
    if (copy != making.copies.end()) return {copy->second, value.index};
    Graph& graph = *making.piece.graph;
    if (stands_anywhere(*value.node)) return {constant_in(graph, *value.node), value.index};
    const StateSource source = placed_.source_of(value);
    if (source.maker != nullptr && source.part == making.part)
      return {making.handles.at(source.maker->original_name()), 0};
    const auto known = std::ranges::find(making.given, value);
    const auto number = static_cast<size_t>(known - making.given.begin());
    if (known != making.given.end()) return making.piece.feeds[number].second;
    check_goes_over(value, reader, making.part);
    making.given.push_back(value);
    const NamedAttrs attrs = {{"dtype", value.node->op().output_type(value.index)},
                              {"shape", value.node->info(value.index).shape}};
    Node& fed = graph.add({.op = "Placeholder",
                           .name = concat(value.node->original_name(), "/_given"),
                           .inputs = {},
                           .attrs = attrs});
    return making.piece.feeds.emplace_back(number, Output{&fed, 0}).second;
  }

  void note_ends(Making& making) const {
    const Run& run = making.run;
    for (const Output& value : run.outputs) {
      making.piece.fetches.emplace_back(making.piece.fetches.size(),
                                        Output{making.copies.at(value.node), value.index});
    }
    for (const Node* node : run.nodes) {
      const auto is_its = [&](const Output& value) { return value.node == node; };
      Node* const copy = making.copies.at(node);
      if (copy->consumers().empty() && std::ranges::none_of(run.outputs, is_its))
        making.piece.targets.emplace_back(making.piece.targets.size(), copy);
    }
  }

  // --- Results

  void add_results(Function& function) {
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      const Output result = result_of(function, i);
      function.outputs[i].dtype = result.node->op().output_type(result.index);
      function.output_values.push_back(to_text(result));
    }
  }

  Output result_of(const Function& function, size_t i) {
    const int fetch = body_.results[i];
    const DType type = function.outputs[i].dtype;
    if (fetch >= 0) {
      const Output value = placed_.fetches[static_cast<size_t>(fetch)];
      if (is_handle(*value.node)) return handed_on(value);
      return value_in_body(value, *value.node, body_.caller);
    }
    // Of a loop, what does not stay an argument has to be of its dtype.
    const Graph& before = *body_.function.body;
    const Output given = before.find_output(body_.function.output_values[i]);
    for (size_t arg = 0; arg < args_.size(); ++arg)
      if (body_.remote[arg] && before.find_output(body_.function.input_nodes[arg]) == given)
        return {args_[arg], 0};
    const NamedAttrs attrs = {{"dtype", type}, {"shape", function.outputs[i].shape}};
    return {&made_->add({.op = "Placeholder", .name = "_not_wanted", .inputs = {}, .attrs = attrs}),
            0};
  }

  // A handle of another task that goes around in a loop.
  Output handed_on(const Output& value) {
    for (size_t arg = 0; arg < args_.size(); ++arg)
      if (body_.args[arg] == value.node) return {args_[arg], 0};
    refuse(value, *value.node, body_.caller);
  }

  void check_goes_over(const Output& value, const Node& reader, int32_t to) const {
    if (!goes_over(value.node->op().output_type(value.index))) refuse(value, reader, to);
  }

  [[noreturn]] void refuse(const Output& value, const Node& reader, int32_t to) const {
    const Node& node = *value.node;
    const std::string created = creation_text(node);
    throw unimplemented(error_prefix(node.type(), node.original_name()), "gives a ",
                        node.op().output_type(value.index), " that is read in ", name_of(to),
                        " (\"", reader.original_name(), "\"), and is itself in ",
                        name_of(placed_.part_of(node)),
                        ": numbers, truth values and strings pass between tasks; place its "
                        "readers where it is",
                        created.empty() ? "" : "\n", created);
  }

  const BodyToCut& body_;
  const PlacedGraph& placed_;
  const GivePiece give_;
  const std::shared_ptr<Graph> made_;
  std::vector<Node*> order_;
  std::vector<int> levels_;    // by id
  std::vector<Node*> copies_;  // by id, in made_, of the caller's own nodes
  std::vector<Run*> run_of_;   // by id, of the others
  std::vector<Node*> args_;    // in made_
  std::map<RunKey, Run> runs_;
  std::map<std::pair<const Graph*, int>, Node*> constants_;
};

}  // namespace

std::shared_ptr<Function> cut_body(const BodyToCut& body, const std::string& name, GivePiece give) {
  return BodyCutter(body, give).cut(name);
}

}  // namespace treenail
