// SPDX-License-Identifier: Apache-2.0
#include "python/binding/quick_call.h"

#include <array>

#include "framework/base/interrupt.h"
#include "framework/eager/tape.h"
#include "python/binding/gil.h"
#include "python/binding/precision.h"
#include "python/binding/quick_constants.h"
#include "python/binding/signals.h"
#include "python/binding/tape_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

constexpr size_t kMostInputs = 6;
// What is run keeps the GIL where it is estimated to take less.
constexpr double kKeepsGilNs = 20'000;

// The inputs of a call as tensors; false where one is of another kind.
class QuickInputs {
 public:
  bool take(const OpDef& def, std::span<PyObject* const> inputs) {
    count_ = inputs.size();
    bool numbers = false;
    for (size_t i = 0; i < count_; ++i) {
      if (def.inputs[i].is_list() || inputs[i] == nullptr) return false;
      values_[i] = immediate_value(inputs[i]);
      numbers = numbers || values_[i] == nullptr;
    }
    if (numbers && !take_numbers(def, inputs)) return false;
    return true;
  }
  std::span<const ImmediateTensor* const> values() const { return {values_.data(), count_}; }

 private:
  bool take_numbers(const OpDef& def, std::span<PyObject* const> inputs) {
    for (size_t i = 0; i < count_; ++i) {
      if (values_[i] != nullptr) continue;
      const DType dtype = dtype_of_number(def, i);
      if (dtype == DType::kInvalid) return false;
      constants_[i] = quick_number(inputs[i], dtype);
      if (constants_[i] == nullptr) constants_[i] = quick_integers(inputs[i], dtype);
      if (constants_[i] == nullptr) return false;
      values_[i] = constants_[i].get();
    }
    return true;
  }
  // The op's, that of a tensor whose dtype it must share, or the default of indices and shapes.
  DType dtype_of_number(const OpDef& def, size_t number) const {
    const ArgDef& wanted = def.inputs[number];
    if (wanted.dtype != DType::kInvalid) return wanted.dtype;
    for (size_t i = 0; i < count_; ++i) {
      if (values_[i] != nullptr && def.inputs[i].type_attr == wanted.type_attr)
        return values_[i]->tensor.dtype();
    }
    if (wanted.type_attr < 0) return DType::kInvalid;
    const AttrDef& attr = def.attrs[static_cast<size_t>(wanted.type_attr)];
    const bool index = attr.has_default && attr.default_value.get<DType>() == DType::kInt32;
    return index ? DType::kInt32 : DType::kInvalid;
  }

  size_t count_ = 0;
  std::array<const ImmediateTensor*, kMostInputs> values_;
  std::array<QuickConstant, kMostInputs> constants_;
};

Ref call_prepared(const ImmediateCall& given, std::span<const ImmediateTensor* const> inputs) {
  const OpDef& def = given.def;
  const auto call = naming_op(def, [&] { return prepare_call(given); });
  CallRun run(*call, given.inputs, nullptr);
  naming_op(def, [&] { run_call(run, *call); });
  if (run.num_outputs() == 1 && def.outputs.size() == 1 && !def.outputs[0].is_list()) {
    ImmediateTensor output{std::move(run.output(0))};
    if (tapes_record()) record_op(call->op(), inputs, {&output, 1}, rule_in_python(def));
    return new_concrete_tensor(std::move(output));
  }
  std::vector<ImmediateTensor> outputs;
  for (size_t i = 0; i < run.num_outputs(); ++i) outputs.push_back({std::move(run.output(i))});
  if (tapes_record()) record_op(call->op(), inputs, outputs, rule_in_python(def));
  return concrete_result(def, outputs);
}

}  // namespace

void run_call(CallRun& run, const PreparedCall& call) {
  if (call.cost_ns() < kKeepsGilNs) return run.run();
  const GilRelease release;
  const InterruptScope scope(call.may_wait() ? signal_poll() : nullptr);
  run.run();
}

Ref quick_call(const OpDef& def, std::span<PyObject* const> inputs, const NamedAttrs& attrs) {
  if (inputs.size() != def.inputs.size() || inputs.size() > kMostInputs) return {};
  if (current_precision() != DType::kInvalid) return {};
  QuickInputs given;
  return given.take(def, inputs) ? quick_call(def, given.values(), attrs) : Ref();
}

Ref quick_call(const OpDef& def, std::span<const ImmediateTensor* const> inputs,
               const NamedAttrs& attrs) {
  return quick_call_on(current_device(), def, inputs, attrs);
}

Ref quick_call_on(std::string_view device, const OpDef& def,
                  std::span<const ImmediateTensor* const> inputs, const NamedAttrs& attrs) {
  std::array<const Tensor*, kMostInputs> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) pointers[i] = &inputs[i]->tensor;
  const ImmediateCall given{def, {pointers.data(), inputs.size()}, attrs, {}};
  return at_its_place(given, device,
                      [&](const ImmediateCall& call) { return call_prepared(call, inputs); });
}

}  // namespace treenail::python
