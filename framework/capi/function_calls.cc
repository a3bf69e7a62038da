// SPDX-License-Identifier: Apache-2.0
// tn_graph_add_call, _if, _while: bodies become functions of the graph around all of them, and an
// operation that calls them is added, which passes what they capture.
#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "framework/capi/body.h"
#include "framework/graph/linearise.h"

using treenail::AttrValue;
using treenail::DType;
using treenail::FunctionAttr;
using treenail::Graph;
using treenail::invalid_argument;
using treenail::NamedAttrs;
using treenail::Node;
using treenail::Output;
using treenail::PartialShape;
using treenail::capi::Body;
using treenail::capi::body_of;
using treenail::capi::GraphState;
using treenail::capi::guarded;

namespace {

// Whether it must not be folded or merged: for what it holds besides its arguments, which are
// placeholders.
bool does_more_than_compute(const Graph& body, const std::vector<Output>& arguments) {
  const std::shared_lock lock(body.mutex());
  for (int id = 0; id < body.num_nodes(); ++id) {
    const Node* node = body.node(id);
    if (node == nullptr || !node->op().def().stateful) continue;
    const bool argument = std::any_of(arguments.begin(), arguments.end(),
                                      [node](const Output& a) { return a.node == node; });
    if (!argument) return true;
  }
  return false;
}

// A body that is about to be called.
struct Callee {
  const char* attr;  // which attribute of the call names it
  tn_graph* graph;
  Body& body() const { return *graph->state->body(); }
};

Callee callee(const char* attr, tn_graph* body, tn_graph* around) {
  Body& b = body_of(body, attr);
  if (&b.outer() != &treenail::capi::state_of(around))
    throw invalid_argument(attr, " \"", b.name(), "\" is no body of the graph that calls it");
  if (body->state->graph().finalized())
    throw treenail::failed_precondition(attr, " \"", b.name(), "\" was called before");
  return {attr, body};
}

DType dtype_of(const Output& value) { return value.node->op().output_type(value.index); }

PartialShape shape_of(const Output& value) {
  const std::shared_lock lock(value.node->graph().mutex());
  return value.node->info(value.index).shape;
}

std::vector<DType> dtypes_of(const std::vector<Output>& values) {
  std::vector<DType> types;
  for (const Output& value : values) types.push_back(dtype_of(value));
  return types;
}

void check_dtypes(const char* what, const std::vector<DType>& given, const char* whose,
                  const std::vector<DType>& needed) {
  if (given.size() != needed.size()) {
    throw invalid_argument(given.size(), " ", what, " are given, ", needed.size(),
                           " are needed, as of ", whose);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == needed[i]) continue;
    throw invalid_argument("number ", i, " of the ", what, " is ", given[i], "; needed is ",
                           needed[i], ", as of ", whose);
  }
}

// All that one of them captures, each once.
std::vector<Output> captured_by(const std::vector<Callee>& callees) {
  std::vector<Output> all;
  for (const Callee& c : callees) {
    for (const Output& value : c.body().captured()) {
      if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
    }
  }
  return all;
}

// Operations that call functions: adds the functions, then the node.
class Caller {
 public:
  Caller(tn_graph* graph, std::vector<Callee> callees, const tn_output* const* inputs,
         size_t num_inputs)
      : state_(*graph->state),
        callees_(std::move(callees)),
        inputs_(treenail::capi::values_in(state_, inputs, num_inputs, "inputs")),
        captured_(captured_by(callees_)) {
    for (const Callee& c : callees_) {
      check_dtypes("inputs", dtypes_of(inputs_), c.attr, dtypes_of(c.body().arguments));
    }
    inputs_.insert(inputs_.end(), captured_.begin(), captured_.end());
  }

  // What stands in a callee for the captured values, all of them.
  std::vector<Output> stand_ins(const Callee& c) {
    std::vector<Output> values;
    for (const Output& value : captured_)
      values.push_back(c.body().stand_in(*c.graph->state, value));
    return values;
  }

  // `results`: what the function gives, where that is more than the body's results.
  void add_function(const Callee& c, const std::vector<Output>& results) {
    std::vector<Output> arguments = c.body().arguments;
    const std::vector<Output> more = stand_ins(c);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::shared_ptr<Graph>& body = c.graph->state->shared();
    stateful_ |= does_more_than_compute(*body, arguments);
    Graph& library = c.body().root().graph();
    const std::unique_lock lock(library.mutex());
    const std::string name =
        treenail::add_function(library, c.body().name(), body, arguments, results);
    attrs_.push_back({c.attr, FunctionAttr{name, {}}});
  }

  tn_operation* add(const char* op, const char* stateless, const char* name,
                    std::vector<Output> first, NamedAttrs attrs) {
    for (const Output& value : captured_) stateful_ |= dtype_of(value) == DType::kResource;
    std::vector<int> sizes(first.size(), 1);
    sizes.push_back(static_cast<int>(inputs_.size()));
    first.insert(first.end(), inputs_.begin(), inputs_.end());
    attrs.insert(attrs.end(), attrs_.begin(), attrs_.end());
    const std::unique_lock lock(state_.graph().mutex());
    Node& node = state_.graph().add({.op = stateful_ ? op : stateless,
                                     .name = name == nullptr ? op : name,
                                     .inputs = first,
                                     .attrs = attrs,
                                     .arg_sizes = sizes});
    return state_.handle(node);
  }

 private:
  GraphState& state_;
  std::vector<Callee> callees_;
  std::vector<Output> inputs_;
  std::vector<Output> captured_;
  NamedAttrs attrs_;
  bool stateful_ = false;
};

std::vector<PartialShape> shapes_of(const std::vector<Output>& values) {
  std::vector<PartialShape> shapes;
  for (const Output& value : values) shapes.push_back(shape_of(value));
  return shapes;
}

// What holds for both.
PartialShape common(const PartialShape& a, const PartialShape& b) {
  if (!a.rank_known() || !b.rank_known() || a.rank() != b.rank()) return PartialShape();
  std::vector<int64_t> dims;
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a.dim(i) == b.dim(i) ? a.dim(i) : -1);
  return PartialShape(dims);
}

}  // namespace

tn_operation* tn_graph_add_call(tn_graph* graph, const char* name, tn_graph* body,
                                const tn_output* const* inputs, size_t num_inputs,
                                tn_status* status) noexcept {
  return guarded(status, [&] {
    const Callee f = callee("f", body, graph);
    Caller caller(graph, {f}, inputs, num_inputs);
    const std::vector<Output>& results = f.body().results;
    NamedAttrs attrs{{"Tout", dtypes_of(results)}, {"output_shapes", shapes_of(results)}};
    caller.add_function(f, results);
    return caller.add("StatefulPartitionedCall", "PartitionedCall", name, {}, std::move(attrs));
  });
}

tn_operation* tn_graph_add_if(tn_graph* graph, const char* name, const tn_output* cond,
                              tn_graph* then_body, tn_graph* else_body,
                              const tn_output* const* inputs, size_t num_inputs,
                              tn_status* status) noexcept {
  return guarded(status, [&] {
    const Callee yes = callee("then_branch", then_body, graph);
    const Callee no = callee("else_branch", else_body, graph);
    const Output choice = treenail::capi::value_in(*graph->state, cond, "cond");
    Caller caller(graph, {yes, no}, inputs, num_inputs);
    check_dtypes("results of else_branch", dtypes_of(no.body().results), "then_branch",
                 dtypes_of(yes.body().results));
    std::vector<PartialShape> shapes = shapes_of(yes.body().results);
    const std::vector<PartialShape> others = shapes_of(no.body().results);
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = common(shapes[i], others[i]);
    NamedAttrs attrs{{"Tout", dtypes_of(yes.body().results)}, {"output_shapes", shapes}};
    for (const Callee& c : {yes, no}) caller.add_function(c, c.body().results);
    return caller.add("If", "StatelessIf", name, {choice}, std::move(attrs));
  });
}

tn_operation* tn_graph_add_while(tn_graph* graph, const char* name, tn_graph* cond, tn_graph* body,
                                 const tn_output* const* inputs, size_t num_inputs,
                                 tn_status* status) noexcept {
  return guarded(status, [&] {
    const Callee goes_on = callee("cond", cond, graph);
    const Callee step = callee("body", body, graph);
    Caller caller(graph, {goes_on, step}, inputs, num_inputs);
    check_dtypes("results of cond", dtypes_of(goes_on.body().results), "a condition",
                 {DType::kBool});
    check_dtypes("results of body", dtypes_of(step.body().results), "its arguments",
                 dtypes_of(step.body().arguments));
    // Captured values stay what they are.
    std::vector<Output> results = step.body().results;
    const std::vector<Output> same = caller.stand_ins(step);
    results.insert(results.end(), same.begin(), same.end());
    std::vector<PartialShape> shapes = shapes_of(step.body().arguments);
    const std::vector<PartialShape> more = shapes_of(same);
    shapes.insert(shapes.end(), more.begin(), more.end());
    caller.add_function(goes_on, goes_on.body().results);
    caller.add_function(step, results);
    return caller.add("While", "StatelessWhile", name, {}, {{"output_shapes", shapes}});
  });
}
