// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/gradients.h"

#include <string>

#include "framework/base/error.h"
#include "framework/graph/function_calls.h"
#include "framework/graph/function_gradients.h"
#include "framework/graph/graph_emitter.h"
#include "framework/graph/row_gradients.h"
#include "framework/op/backprop.h"

namespace treenail {
namespace {

Value value_of(const Output& output) {
  return output.node == nullptr ? Value() : GraphEmitter::value_of(output);
}

class GraphProgram final : public DifferentiableProgram {
 public:
  GraphProgram(Graph& graph, std::string scope, const GradientOptions& options)
      : graph_(graph),
        library_(options.library != nullptr ? *options.library : graph),
        emitter_(graph),
        scope_(std::move(scope)),
        overrides_(options.overrides),
        rows_of_(options.rows_of),
        gate_(options.gate) {}

  Emitter& emitter() override { return emitter_; }
  const OpInstance& op(int64_t node) const override { return at(node).op(); }

  void append_inputs(int64_t node, std::vector<Value>& inputs) const override {
    for (const Output& input : at(node).inputs()) inputs.push_back(GraphEmitter::value_of(input));
  }

  std::string error_prefix(int64_t node) const override {
    return treenail::error_prefix(at(node).type(), at(node).name());
  }

  void begin_gradient(int64_t node) override {
    emitter_.set_place(concat(scope_, "/", at(node).name(), "_grad/"), &at(node));
  }
  void begin_sum(int64_t node) override { emitter_.set_place(scope_ + "/", &at(node)); }

  bool override_gradient(int64_t node, std::span<const Gradient> output_gradients,
                         std::span<const bool> needed, std::span<Gradient> result) override {
    if (overrides_ == nullptr || !overrides_->has(at(node))) {
      if (!calls_functions(at(node).op())) {
        return rows_of_ != nullptr && needed[0] &&
               row_gradient(at(node), *rows_of_, emitter_, output_gradients[0], result[0]);
      }
      function_gradients(at(node), {library_, overrides_, gate_, false, rows_of_}, emitter_,
                         output_gradients, needed, result);
      return true;
    }
    std::vector<GraphGradient> given;
    for (const Gradient& gradient : output_gradients) given.push_back(to_graph(gradient));
    const std::vector<GraphGradient> gradients = overrides_->gradients(at(node), given);
    if (gradients.size() != result.size()) {
      throw invalid_argument("the registered gradient gives ", gradients.size(), " gradients for ",
                             result.size(), " inputs");
    }
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] = from_graph(gradients[i]);
      check_given(at(node), static_cast<int>(i), result[i]);
    }
    return true;
  }

  void end_gradient(int64_t node, std::span<Gradient> result) override {
    if (!gate_) return;
    std::vector<Node*> all;
    int count = 0;
    for (const Gradient& gradient : result) {
      count += gradient.kind == Gradient::Kind::kNone ? 0 : 1;
      for (const Value& value : parts(gradient)) all.push_back(emitter_.output_of(value).node);
    }
    if (count < 2) return;
    for (Gradient& gradient : result) {
      if (gradient.dense.valid()) gradient.dense = after(all, gradient.dense, at(node));
      if (gradient.values.valid()) gradient.values = after(all, gradient.values, at(node));
    }
  }

  GraphGradient to_graph(const Gradient& g) const {
    return {g.kind, emitter_.output_of(g.dense), emitter_.output_of(g.values),
            emitter_.output_of(g.indices), emitter_.output_of(g.dense_shape)};
  }

 private:
  Node& at(int64_t node) const { return *graph_.node(static_cast<int>(node)); }

  Gradient from_graph(const GraphGradient& g) const {
    for (const Output& output : {g.dense, g.values, g.indices, g.dense_shape}) {
      if (output.node != nullptr && &output.node->graph() != &graph_) {
        throw invalid_argument("the registered gradient gives ", output,
                               ", which is of another graph");
      }
    }
    Gradient result{g.kind, value_of(g.dense), value_of(g.values), value_of(g.indices),
                    value_of(g.dense_shape)};
    const bool slices =
        result.values.valid() && result.indices.valid() && result.dense_shape.valid();
    if ((g.kind == Gradient::Kind::kDense && !result.dense.valid()) ||
        (g.kind == Gradient::Kind::kSlices && !slices)) {
      throw invalid_argument("the registered gradient gives an incomplete gradient");
    }
    return result;
  }

  // What is wrong with a gradient is not our own mistake here.
  void check_given(const Node& node, int input, const Gradient& gradient) const {
    const Value value = gradient.kind == Gradient::Kind::kDense ? gradient.dense : gradient.values;
    if (!value.valid()) return;
    const Output& argument = node.input(input);
    const ValueInfo& wanted = argument.node->info(argument.index);
    const bool variable = wanted.dtype == DType::kResource;
    const DType dtype = !variable                  ? wanted.dtype
                        : wanted.handle != nullptr ? wanted.handle->dtype
                                                   : emitter_.dtype(value);
    const PartialShape& shape =
        variable && wanted.handle != nullptr ? wanted.handle->shape : wanted.shape;
    if (emitter_.dtype(value) != dtype) {
      throw invalid_argument("the registered gradient gives ", emitter_.dtype(value),
                             " for input \"", node.op().input_name(input), "\", which is ", dtype);
    }
    if (gradient.kind == Gradient::Kind::kDense && !shape.compatible(emitter_.shape(value)) &&
        !(variable && wanted.handle == nullptr)) {
      throw invalid_argument("Incompatible shapes between op input and calculated input gradient: ",
                             "the registered gradient gives ", emitter_.shape(value),
                             " for input \"", node.op().input_name(input), "\" of shape ", shape);
    }
  }

  static std::vector<Value> parts(const Gradient& gradient) {
    std::vector<Value> values;
    for (const Value& value : {gradient.dense, gradient.values, gradient.indices})
      if (value.valid()) values.push_back(value);
    return values;
  }

  Value after(std::span<Node* const> all, Value value, const Node& origin) {
    const std::string name = concat(scope_, "/", origin.name(), "_grad/gated");
    const Output input = emitter_.output_of(value);
    const Node& node = graph_.add({.op = "Identity",
                                   .name = name,
                                   .inputs = {&input, 1},
                                   .attrs = {},
                                   .control_inputs = all,
                                   .device = origin.device(),
                                   .creation = origin.creation()});
    return {node.id(), 0};
  }

  Graph& graph_;
  Graph& library_;
  GraphEmitter emitter_;
  std::string scope_;
  GradientOverrides* overrides_;
  RowSources* const rows_of_;
  const bool gate_;
};

std::vector<Value> values_of(const Graph& graph, std::span<const Output> outputs,
                             std::string_view what, bool optional) {
  std::vector<Value> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    const bool absent = output.node == nullptr && optional;
    const bool ours = output.node != nullptr && &output.node->graph() == &graph &&
                      output.index >= 0 && output.index < output.node->num_outputs();
    if (!absent && !ours)
      throw invalid_argument(what, "[", i, "] (", output, ") is not a value of this graph");
    values.push_back(value_of(output));
  }
  return values;
}

}  // namespace

GradientOverrides::~GradientOverrides() = default;

std::unique_ptr<GradientOverrides> GradientOverrides::in_body(const Function&,
                                                              const std::shared_ptr<Graph>&,
                                                              std::span<const Output>) {
  return nullptr;
}

Output dense_output(const GraphGradient& g, GraphEmitter& emitter) {
  if (g.kind == Gradient::Kind::kNone) return {};
  return emitter.output_of(emitter.densified({g.kind, value_of(g.dense), value_of(g.values),
                                              value_of(g.indices), value_of(g.dense_shape)}));
}

std::vector<GraphGradient> add_gradients(Graph& graph, std::span<const Output> ys,
                                         std::span<const Output> xs,
                                         const GradientOptions& options) {
  const std::vector<Value> y_values = values_of(graph, ys, "ys", false);
  const std::vector<Value> x_values = values_of(graph, xs, "xs", false);
  const std::vector<Value> grads = values_of(graph, options.grad_ys, "grad_ys", true);
  const std::vector<Value> stops =
      values_of(graph, options.stop_gradients, "stop_gradients", false);
  GraphProgram program(graph, graph.unique_name(options.name), options);
  std::vector<GraphGradient> result;
  for (const Gradient& gradient : backpropagate(program, {y_values, x_values, grads, stops})) {
    result.push_back(program.to_graph(gradient));
  }
  return result;
}

}  // namespace treenail
