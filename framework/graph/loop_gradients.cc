// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/loop_gradients.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "framework/base/error.h"
#include "framework/graph/import.h"
#include "framework/graph/loop_gradient.h"

namespace treenail {
namespace {

// The inputs of a body that each of its outputs may have a gradient for: reached by values that may
// carry one.
class Reach {
 public:
  explicit Reach(const Function& f) : body_(*f.body) {
    for (const std::string& name : f.input_nodes) inputs_.push_back(body_.find_output(name));
    for (const std::string& name : f.output_values) outputs_.push_back(body_.find_output(name));
  }

  // Adds to `found`, by input, what output i reaches.
  void add(size_t i, std::vector<bool>& found) {
    std::vector<Output> stack{outputs_[i]};
    std::unordered_set<const Node*> seen;
    while (!stack.empty()) {
      const Output value = stack.back();
      stack.pop_back();
      const auto input = std::ranges::find(inputs_, value);
      if (input != inputs_.end()) {
        found[static_cast<size_t>(input - inputs_.begin())] = true;
      } else if (seen.insert(value.node).second) {
        for (const Output& each : value.node->inputs()) {
          const DType dtype = each.node->op().output_type(each.index);
          if (carries_gradient(dtype) || dtype == DType::kResource) stack.push_back(each);
        }
      }
    }
  }
  bool passes_on(size_t i) const { return outputs_[i] == inputs_[i]; }

 private:
  const Graph& body_;
  std::vector<Output> inputs_, outputs_;
};

bool is_slice_gradient(const Node& node) { return node.type() == "StridedSliceGrad"; }

// The terms of a sum of slices' gradients; none where it has others.
std::vector<const Node*> slices_in(const Output& sum) {
  if (sum.node == nullptr) return {};
  if (is_slice_gradient(*sum.node)) return {sum.node};
  std::vector<const Node*> slices;
  if (sum.node->type() != "AddN") return slices;
  for (const Output& term : sum.node->inputs()) slices.push_back(term.node);
  const bool all = std::ranges::all_of(slices, [](const Node* n) { return is_slice_gradient(*n); });
  return all ? slices : std::vector<const Node*>();
}

}  // namespace

// A gradient goes through a value if one comes to its output, or from a value that it is made of.
void LoopGradient::find_differentiated() {
  Reach reach(function_named(library_, body_name_));
  differentiated_.resize(count_);
  for (size_t i = 0; i < count_; ++i) {
    const bool list = node_.op().input_type(static_cast<int>(i)) == DType::kVariant;
    stays_.push_back(reach.passes_on(i) && !list);
  }
  std::vector<bool> reached(count_);
  std::vector<size_t> fresh;
  for (size_t i = 0; i < count_; ++i) {
    if (output_gradients_[i].kind != Gradient::Kind::kNone) fresh.push_back(i);
  }
  while (!fresh.empty()) {
    const size_t i = fresh.back();
    fresh.pop_back();
    if (differentiated_[i]) continue;
    differentiated_[i] = true;
    reach.add(i, reached);
    for (size_t k = 0; k < count_; ++k) {
      // What stays the same leads nowhere else.
      const bool asked = needed_[k] || !reach.passes_on(k);
      if (reached[k] && asked && !differentiated_[k] &&
          carries_gradient(node_.op().input_type(static_cast<int>(k))))
        fresh.push_back(k);
    }
  }
  for (size_t i = 0; i < count_; ++i) {
    if (differentiated_[i] || (reached[i] && needed_[i] &&
                               node_.op().input_type(static_cast<int>(i)) == DType::kResource))
      wants_.push_back(i);
  }
}

void LoopGradient::linearise_body() {
  BodyRequest request;
  request.has_gradient.resize(count_);
  request.wanted.resize(count_);
  request.around.resize(count_);
  request.rows = stays_;
  for (const size_t i : wants_) request.wanted[i] = true;
  for (size_t i = 0; i < count_; ++i) request.has_gradient[i] = is_carried(i);
  const Function& body = function_named(library_, body_name_);
  for (size_t i = 0; i < count_; ++i) {
    if (body.body->find_output(body.output_values[i]) ==
        body.body->find_output(body.input_nodes[i]))
      request.around[i] = node_.input(static_cast<int>(i));
  }
  l_ = linearise(body, request, setting_);
  GraphEmitter e(*l_.body);
  e.set_place("gradients/", nullptr);
  std::erase_if(wants_, [&](size_t i) {  // what no gradient comes to after all
    return l_.gradients[i].node == nullptr && !has_rows(i) && !is_carried(i);
  });
  for (const size_t i : wants_) {
    if (l_.gradients[i].node == nullptr && !has_rows(i))
      l_.gradients[i] = e.output_of(e.zeros_like(GraphEmitter::value_of(l_.inputs[i])));
  }
  slices_.resize(count_);
  for (const size_t i : wants_)
    if (!is_carried(i)) slices_[i] = slices_in(l_.gradients[i]);
  l_.find_reads();
  sort_reads();
  stateful_ = is_stateful(*l_.body);
  for (const size_t i : invariants_)
    stateful_ = stateful_ || dtype_of(l_.inputs[i]) == DType::kResource;
  for (const CapturedValue& value : l_.captured)
    stateful_ = stateful_ || dtype_of(value.inside) == DType::kResource;
}

void LoopGradient::sort_reads() {
  kept_ = l_.kept;
  for (size_t i = 0; i < count_; ++i) {
    if (!l_.reads_input[i]) continue;
    if (l_.outputs[i] == l_.inputs[i]) {
      invariants_.push_back(i);
    } else {
      kept_.push_back(l_.inputs[i]);
    }
  }
  for (const Output& value : kept_) {
    if (dtype_of(value) == DType::kResource)
      throw unimplemented("the gradient reads the handle ", to_text(value), " of each iteration");
  }
}

// The body, which also counts and pushes what is kept.
std::string LoopGradient::add_forward_body() {
  Graph& body = *l_.body;
  GraphEmitter e(body);
  e.set_place("kept/", nullptr);
  std::vector<Output> inputs = l_.inputs, outputs = l_.outputs;
  inputs.push_back(add_placeholder(body, "kept/count", DType::kInt32, Shape()));
  outputs.push_back(
      e.output_of(e.add(GraphEmitter::value_of(inputs.back()), e.const_scalar(DType::kInt32, 1))));
  for (const Output& value : kept_) {
    inputs.push_back(add_placeholder(body, "kept/list", DType::kVariant, Shape()));
    outputs.push_back(
        e.output_of(e.call("TensorListPushBack", {GraphEmitter::value_of(inputs.back()),
                                                  GraphEmitter::value_of(value)})));
  }
  return add_function(library_, body_name_ + "_forward", l_.body, inputs, outputs, l_.rules);
}

// The condition, which is given as many values.
std::string LoopGradient::add_forward_cond() {
  const Function& old = function_named(library_, cond_name_);
  auto graph = std::make_shared<Graph>();
  import_graph(*graph, *old.body);
  std::vector<Output> inputs, outputs;
  for (const std::string& name : old.input_nodes) inputs.push_back(graph->find_output(name));
  for (const std::string& name : old.output_values) outputs.push_back(graph->find_output(name));
  inputs.push_back(add_placeholder(*graph, "kept/count", DType::kInt32, Shape()));
  for (size_t i = 0; i < kept_.size(); ++i)
    inputs.push_back(add_placeholder(*graph, "kept/list", DType::kVariant, Shape()));
  return add_function(library_, cond_name_ + "_forward", std::move(graph), inputs, outputs);
}

void LoopGradient::grow_node(const std::string& body, const std::string& cond) {
  std::vector<Output> more{e_.output_of(e_.const_scalar(DType::kInt32, 0))};
  std::vector<DType> dtypes(node_.op().input_types().begin(), node_.op().input_types().end());
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < count_; ++i) shapes.push_back(node_.info(static_cast<int>(i)).shape);
  dtypes.push_back(DType::kInt32);
  shapes.emplace_back(Shape());
  for (const Output& value : kept_) {
    const Value any = e_.const_scalar(DType::kInt32, -1);
    const Value none = e_.call("EmptyTensorList", {any, any}, {{"element_dtype", dtype_of(value)}});
    more.push_back(e_.output_of(none));
    dtypes.push_back(DType::kVariant);
    shapes.emplace_back(Shape());
  }
  node_.graph().grow(node_, more,
                     {{"T", dtypes},
                      {"output_shapes", shapes},
                      {"cond", FunctionAttr{cond, {}}},
                      {"body", FunctionAttr{body, {}}}});
}

bool loop_gradients(Node& node, const BodySetting& setting, GraphEmitter& emitter,
                    std::span<const Gradient> output_gradients, std::span<const bool> needed,
                    std::span<Gradient> result) {
  return LoopGradient(node, setting, emitter, output_gradients, needed).run(result);
}

}  // namespace treenail
