// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/gradients.h"

#include <string>

#include "framework/base/error.h"
#include "framework/graph/function_gradients.h"
#include "framework/graph/graph_emitter.h"
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
        overrides_(options.overrides) {}

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
      if (!calls_functions(at(node).op())) return false;
      function_gradients(at(node), library_, emitter_, output_gradients, needed, result);
      return true;
    }
    std::vector<GraphGradient> given;
    for (const Gradient& gradient : output_gradients) given.push_back(to_graph(gradient));
    const std::vector<GraphGradient> gradients = overrides_->gradients(at(node), given);
    if (gradients.size() != result.size()) {
      throw invalid_argument("the registered gradient gives ", gradients.size(), " gradients for ",
                             result.size(), " inputs");
    }
    for (size_t i = 0; i < result.size(); ++i) result[i] = from_graph(gradients[i]);
    return true;
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

  Graph& graph_;
  Graph& library_;
  GraphEmitter emitter_;
  std::string scope_;
  GradientOverrides* overrides_;
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
