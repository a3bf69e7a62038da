// SPDX-License-Identifier: Apache-2.0
// Tape::gradients(): op/backprop.h over a tape's part of its record. What rules emit runs at once,
// and is recorded by the tapes that are open then.
#include <algorithm>
#include <deque>

#include "framework/base/error.h"
#include "framework/eager/tape.h"
#include "framework/graph/graph.h"
#include "framework/op/backprop.h"
#include "framework/op/op_registry.h"

namespace treenail {

// A node of the program is a step, and its number the step's first output + 1; what is watched is a
// node without inputs. Node 0 has all other values: those of inputs that are not recorded, and what
// rules emit.
class TapeProgram final : public DifferentiableProgram, public Emitter {
 public:
  TapeProgram(const Tape& tape, RunOp run) : tape_(tape), record_(*tape.record_), run_(run) {}

  Value value_of(int64_t value) {
    const int64_t step = record_.step_of(value);
    if (step == Record::kNone) return {value + 1, 0};
    const int64_t first = record_.step(step).first_output;
    return {first + 1, static_cast<int32_t>(value - first)};
  }
  Value loose(ImmediateTensor tensor) {
    loose_.push_back(std::move(tensor));
    return {0, static_cast<int32_t>(loose_.size()) - 1};
  }
  ImmediateTensor immediate(Value value) const {
    if (value.id == 0) return loose_[static_cast<size_t>(value.output)];
    return record_.immediate(value.id - 1 + value.output);
  }
  ImmediateGradient immediate(const Gradient& gradient) const {
    ImmediateGradient result;
    result.kind = gradient.kind;
    if (gradient.kind == Gradient::Kind::kDense) result.dense = immediate(gradient.dense);
    if (gradient.kind == Gradient::Kind::kSlices) {
      result.values = immediate(gradient.values);
      result.indices = immediate(gradient.indices);
      if (gradient.dense_shape.valid()) result.dense_shape = immediate(gradient.dense_shape);
    }
    return result;
  }

  // --- As a program
  // -------------------------------------------------------------------------------

  Emitter& emitter() override { return *this; }
  const OpInstance& op(int64_t node) const override {
    const Record::Step* const step = step_at(node);
    return step != nullptr ? step->op : leaf();
  }
  void append_inputs(int64_t node, std::vector<Value>& inputs) const override {
    const Record::Step* const step = step_at(node);
    if (step == nullptr || !tape_.sees(record_.step_of(node - 1))) return;
    for (int i = 0; i < step->op.num_inputs(); ++i)
      inputs.push_back(
          const_cast<TapeProgram*>(this)->value_of(record_.input(step->first_input + i)));
  }
  std::string error_prefix(int64_t node) const override {
    return node == 0 ? std::string() : treenail::error_prefix(op(node).name(), "");
  }
  void begin_gradient(int64_t) override {}
  void begin_sum(int64_t) override {}
  bool override_gradient(int64_t node, std::span<const Gradient> output_gradients,
                         std::span<const bool> needed, std::span<Gradient> result) override;

  // --- As what emits
  // ------------------------------------------------------------------------------

  std::vector<Value> emit(std::string_view op, std::span<const Value> inputs,
                          const NamedAttrs& attrs, std::span<const int> arg_sizes) override;
  DType dtype(Value value) const override { return at(value).dtype(); }
  PartialShape shape(Value value) const override { return at(value).shape(); }
  const Tensor* constant(Value value) const override {
    const Tensor& tensor = at(value);
    return tensor.raw() != nullptr && tensor.device() == nullptr ? &tensor : nullptr;
  }

 private:
  static const OpInstance& leaf() {
    static const OpInstance instance = [] {
      const NamedAttr attrs[] = {{"dtype", DType::kFloat32}, {"shape", PartialShape()}};
      return resolve_op(OpRegistry::instance().get("Placeholder"), {}, attrs);
    }();
    return instance;
  }
  const Record::Step* step_at(int64_t node) const {
    const int64_t step = node == 0 ? Record::kNone : record_.step_of(node - 1);
    return step == Record::kNone ? nullptr : &record_.step(step);
  }
  const Tensor& at(Value value) const {
    if (value.id == 0) return loose_[static_cast<size_t>(value.output)].tensor;
    return record_.tensor(value.id - 1 + value.output);
  }

  const Tape& tape_;
  const Record& record_;
  RunOp run_;
  std::deque<ImmediateTensor> loose_;
};

bool TapeProgram::override_gradient(int64_t node, std::span<const Gradient> output_gradients,
                                    std::span<const bool> needed, std::span<Gradient> result) {
  const Record::Step& step = *step_at(node);
  if (step.rule == nullptr) return false;
  std::vector<ImmediateTensor> values;
  for (int i = 0; i < step.op.num_inputs(); ++i)
    values.push_back(record_.immediate(record_.input(step.first_input + i)));
  for (int i = 0; i < step.op.num_outputs(); ++i)
    values.push_back(record_.immediate(step.first_output + i));
  std::vector<ImmediateGradient> given;
  for (const Gradient& gradient : output_gradients) given.push_back(immediate(gradient));
  const std::shared_ptr<RecordedRule> rule = step.rule;
  const std::vector<ImmediateGradient> found =
      rule->gradients(OpInstance(step.op), values, given, needed);
  for (size_t i = 0; i < found.size() && i < result.size(); ++i) {
    const ImmediateGradient& g = found[i];
    if (g.kind == Gradient::Kind::kDense) result[i] = Gradient::of(loose(g.dense));
    if (g.kind == Gradient::Kind::kSlices) {
      result[i] = Gradient::slices(loose(g.values), loose(g.indices),
                                   g.dense_shape.tensor.defined() ? loose(g.dense_shape) : Value());
    }
  }
  return true;
}

std::vector<Value> TapeProgram::emit(std::string_view op, std::span<const Value> inputs,
                                     const NamedAttrs& attrs, std::span<const int> arg_sizes) {
  std::vector<ImmediateTensor> given;
  std::vector<const ImmediateTensor*> pointers;
  std::vector<Tensor> tensors;
  given.reserve(inputs.size());
  for (const Value value : inputs) {
    given.push_back(immediate(value));
    pointers.push_back(&given.back());
    tensors.push_back(given.back().tensor);
    if (tensors.back().raw() == nullptr && tensors.back().num_elements() > 0)
      throw internal_error("a gradient rule reads a value that its op does not declare");
  }
  OpInstance instance;
  std::vector<Tensor> made =
      run_(OpRegistry::instance().get(op), tensors, attrs, arg_sizes, instance);
  std::vector<ImmediateTensor> outputs;
  for (Tensor& tensor : made) outputs.push_back({std::move(tensor)});
  if (tapes_record()) record_op(instance, pointers, outputs);
  std::vector<Value> values;
  for (ImmediateTensor& output : outputs) values.push_back(loose(std::move(output)));
  return values;
}

std::vector<ImmediateGradient> Tape::gradients(std::span<const ImmediateTensor> targets,
                                               std::span<const ImmediateTensor> sources,
                                               std::span<const ImmediateTensor> output_gradients,
                                               RunOp run) const {
  std::vector<ImmediateGradient> result(sources.size());
  if (record_ == nullptr) return result;
  const std::shared_ptr<Record> kept = record_;  // rules may reset the tape
  TapeProgram program(*this, run);
  std::vector<Value> ys, grad_ys, xs;
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t value = kept->find(targets[i]);
    if (!has_source(value)) continue;
    ys.push_back(program.value_of(value));
    const bool given = !output_gradients.empty() && output_gradients[i].tensor.defined();
    grad_ys.push_back(given ? program.loose(output_gradients[i]) : Value());
  }
  std::vector<size_t> places;
  for (size_t i = 0; i < sources.size(); ++i) {
    const int64_t value = kept->find(sources[i]);
    if (!has_source(value)) continue;
    xs.push_back(program.value_of(value));
    places.push_back(i);
  }
  if (ys.empty() || xs.empty()) return result;
  const std::vector<Gradient> found = backpropagate(program, {ys, xs, grad_ys, {}});
  for (size_t i = 0; i < found.size(); ++i) result[places[i]] = program.immediate(found[i]);
  return result;
}

}  // namespace treenail
