// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/recording.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/eager/execute.h"
#include "framework/graph/graph.h"
#include "framework/op/backprop.h"
#include "framework/op/op_registry.h"

namespace treenail {

class RecordedProgram final : public DifferentiableProgram {
 public:
  explicit RecordedProgram(Recording& recording) : recording_(recording) {}
  Emitter& emitter() override { return recording_; }
  const OpInstance& op(int64_t node) const override { return at(node).op; }
  void append_inputs(int64_t node, std::vector<Value>& inputs) const override {
    inputs.insert(inputs.end(), at(node).inputs.begin(), at(node).inputs.end());
  }
  std::string error_prefix(int64_t node) const override {
    return treenail::error_prefix(at(node).op.name(), "");
  }
  void begin_gradient(int64_t) override {}
  void begin_sum(int64_t) override {}

 private:
  const Recording::Entry& at(int64_t node) const {
    return recording_.entries_[static_cast<size_t>(node)];
  }
  Recording& recording_;
};

Value Recording::input(const Tensor& tensor) {
  const NamedAttr attrs[] = {{"value", tensor}, {"dtype", tensor.dtype()}};
  Entry entry{resolve_op(OpRegistry::instance().get("Const"), {}, attrs), {}, {tensor}, true};
  entries_.push_back(std::move(entry));
  return {static_cast<int64_t>(entries_.size()) - 1, 0};
}

std::vector<Value> Recording::emit(std::string_view op, std::span<const Value> inputs,
                                   const NamedAttrs& attrs, std::span<const int> arg_sizes) {
  std::vector<Tensor> tensors;
  std::vector<DType> types;
  for (Value value : inputs) {
    tensors.push_back(tensor(value));
    types.push_back(tensors.back().dtype());
  }
  Entry entry;
  try {
    entry.op = resolve_op(OpRegistry::instance().get(op), types, attrs, arg_sizes);
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(op, ""));
  }
  entry.outputs = execute(entry.op, tensors, resources_);
  entry.inputs.assign(inputs.begin(), inputs.end());
  entries_.push_back(std::move(entry));
  std::vector<Value> values;
  for (int i = 0; i < entries_.back().op.num_outputs(); ++i) {
    values.push_back({static_cast<int64_t>(entries_.size()) - 1, i});
  }
  return values;
}

bool Recording::is_constant(Value value) const {
  const Entry& entry = entries_[static_cast<size_t>(value.id)];
  return !entry.is_input && entry.op.name() == "Const";
}

PartialShape Recording::shape(Value value) const {
  return known_ == Known::kValues || is_constant(value) ? PartialShape(tensor(value).shape())
                                                        : PartialShape();
}

const Tensor* Recording::constant(Value value) const {
  return known_ == Known::kValues || is_constant(value) ? &tensor(value) : nullptr;
}

std::vector<Gradient> Recording::gradients(std::span<const Value> ys, std::span<const Value> xs,
                                           std::span<const Value> grad_ys,
                                           std::span<const Value> stop_gradients) {
  RecordedProgram program(*this);
  return backpropagate(program, {ys, xs, grad_ys, stop_gradients});
}

}  // namespace treenail
