// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated/execution.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/tensor/resource.h"
#include "tests/simulated/violation.h"

namespace treenail::simulated {
namespace {

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

// In memory of its own: shadows are asked whether they may be written in place.
Tensor host_copy(DType dtype, const Shape& shape, const void* from) {
  Tensor copy(dtype, shape);
  if (copy.bytes() != 0) std::memcpy(copy.raw(), from, copy.bytes());
  return copy;
}

Variable& behind(const Tensor& handle) {
  return static_cast<Variable&>(*handle.data<ResourceElement>()->object);
}

}  // namespace

// In the order of addresses, as every kernel that holds several.
HeldVariables::HeldVariables(SimulatedDevice& device, const OpInstance& op, const RunContext& c) {
  std::map<Variable*, bool, std::less<>> wanted;
  for (int i = 0; i < op.num_inputs(); ++i) {
    if (op.input_type(i) != DType::kResource) continue;
    wanted[&variable_from(c.input(i))] |= op.input_def(i).access == Access::kWrite;
  }
  for (const auto& [variable, writes] : wanted) hold(device, *variable, writes);
}

void HeldVariables::hold(SimulatedDevice& device, Variable& variable, bool writes) {
  if (variable.device() != &device) {
    throw failed_precondition("variable ", variable.name(), " does not live on ",
                              to_text(device.name()));
  }
  const Tensor value =
      writes ? writes_.emplace_back(variable).value() : reads_.emplace_back(variable.read());
  images_.push_back({&variable, writes, variable.name(), value.dtype(), value.shape(),
                     const_cast<void*>(value.raw())});
}

Execution::Execution(SimulatedDevice& device, const OpInstance& op, const Kernel& kernel,
                     const RunContext& c, const HeldVariables& variables)
    : device_(device), op_(op), kernel_(kernel), token_(c.token()), variables_(variables.images()) {
  for (int i = 0; i < op.num_inputs(); ++i) inputs_.push_back(input_value(c, i));
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Value& input = inputs_[static_cast<size_t>(i)];
    if (input.address != nullptr) ranges_.push_back({input.address, input.bytes(), i});
  }
  take_variables();
  for (int i = 0; i < op.num_outputs(); ++i) outputs_.push_back(output_value(c, i));
  take_scratch(c);
}

size_t Execution::Value::bytes() const {
  return static_cast<size_t>(shape.num_elements()) * dtype_size(dtype);
}

void Execution::misuse(const std::string& text) const {
  violation(concat("simulated device ", device_.short_name(), ": ", op_.name(), ": ", text));
  throw internal_error("misuse of a simulated device: ", text);
}

void Execution::check(const char* what, Use use, const void* at, size_t bytes) const {
  const std::string who = concat(op_.name(), ", ", what, ",");
  if (!device_.memory().usable(who.c_str(), use, at, bytes))
    throw internal_error("misuse of a simulated device: ", what);
}

Execution::Value Execution::input_value(const RunContext& c, int i) const {
  const Tensor& tensor = c.input(i);
  const ArgDef& def = op_.input_def(i);
  Value value{tensor.dtype(), tensor.shape()};
  if (tensor.dtype() == DType::kResource) {
    const auto found =
        std::ranges::find(variables_, &variable_from(tensor), &HeldVariables::Image::variable);
    value.variable = static_cast<int>(found - variables_.begin());
  } else if (def.host) {
    if (overlaps_device(tensor.raw(), tensor.bytes()))
      misuse(concat(op_.input_name(i), " is to be in host memory, and is not"));
    value.host = host_copy(tensor.dtype(), tensor.shape(), tensor.raw());
  } else if (!def.anywhere) {
    value.address = const_cast<void*>(tensor.raw());
    check(op_.input_name(i).c_str(), Use::kRead, tensor.raw(), tensor.bytes());
  }
  return value;
}

void Execution::take_variables() {
  for (const HeldVariables::Image& image : variables_) {
    const size_t bytes = static_cast<size_t>(image.shape.num_elements()) * dtype_size(image.dtype);
    check("the variable", image.writes ? Use::kWrite : Use::kRead, image.address, bytes);
    const bool over = std::ranges::any_of(ranges_, [&](const Range& other) {
      return image.writes && overlap(image.address, bytes, other.begin, other.bytes);
    });
    if (over) misuse(concat("variable ", image.name, " is written where an operand lies"));
    ranges_.push_back({image.address, bytes, -1});
  }
}

Execution::Value Execution::output_value(const RunContext& c, int i) {
  Value value;
  if (op_.def().allocates_outputs) return value;
  const Tensor& tensor = c.values_[c.output_slot_ + i];
  value = {tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.raw())};
  check("an output", Use::kWrite, tensor.raw(), tensor.bytes());
  value.in_place = place_output(i, tensor.raw(), tensor.bytes());
  ranges_.push_back({tensor.raw(), tensor.bytes(), -1});
  return value;
}

// Whether the output lies where inputs lie, which only those that the op names may.
bool Execution::place_output(int i, const void* at, size_t bytes) const {
  bool over = false;
  for (const Range& other : ranges_) {
    if (!overlap(at, bytes, other.begin, other.bytes)) continue;
    over = true;
    if (other.input < 0 || other.begin != at || other.bytes != bytes)
      misuse(concat("output ", i, " at ", hex(at), " lies over another operand at ",
                    hex(other.begin)));
  }
  if (over && !may_overwrite(i, at, bytes))
    misuse(concat("output ", i, " at ", hex(at), " lies over an input; the op does not allow it"));
  return over;
}

bool Execution::may_overwrite(int output, const void* at, size_t bytes) const {
  return std::ranges::any_of(op_.def().in_place, [&](const auto& pair) {
    const auto [first, last] = op_.input_range(pair.first);
    if (pair.second != op_.output_arg(output) || first == last) return false;
    const Value& input = inputs_[static_cast<size_t>(first)];
    return input.address == at && input.bytes() == bytes;
  });
}

void Execution::take_scratch(const RunContext& c) {
  const size_t bytes = kernel_.scratch_bytes;
  if (bytes == 0) return;
  scratch_ = c.scratch_;
  check("scratch", Use::kWrite, scratch_, bytes);
  for (const Range& other : ranges_) {
    if (overlap(scratch_, bytes, other.begin, other.bytes))
      misuse(concat("scratch at ", hex(scratch_), " lies over an operand at ", hex(other.begin)));
  }
}

std::vector<Tensor> Execution::run() const {
  const FpEnvironment ieee;
  const std::vector<Tensor> variables = shadow_variables();
  std::vector<Tensor> values = shadow_inputs(variables);
  for (const Value& output : outputs_) {
    if (op_.def().allocates_outputs) {
      values.emplace_back();
      continue;
    }
    void* const bytes = Memory::view(output.address);
    if (output.bytes() != 0 && !output.in_place) std::memset(bytes, kPoison, output.bytes());
    values.emplace_back(output.dtype, output.shape, bytes);
  }
  std::vector<int32_t> slots(inputs_.size());
  std::iota(slots.begin(), slots.end(), 0);
  RunContext c;
  c.values_ = values.data();
  c.input_slots_ = slots.data();
  c.output_slot_ = static_cast<int32_t>(inputs_.size());
  c.token_ = token_;
  if (scratch_ != nullptr) {
    c.scratch_ = Memory::view(scratch_);
    std::memset(c.scratch_, kPoison, kernel_.scratch_bytes);
  }
  kernel_.run(c);
  device_.counts().kernels.fetch_add(1, std::memory_order_relaxed);
  write_back(variables);
  write_outputs(values.data() + inputs_.size());
  return {values.begin() + c.output_slot_, values.end()};
}

// Handles of variables in host memory with the values of the device's.
std::vector<Tensor> Execution::shadow_variables() const {
  std::vector<Tensor> handles;
  for (const HeldVariables::Image& image : variables_) {
    auto shadow = make_counted<Variable>(image.name, image.dtype, PartialShape());
    shadow->assign(host_copy(image.dtype, image.shape, Memory::view(image.address)));
    Tensor& handle = handles.emplace_back(DType::kResource, Shape());
    handle.data<ResourceElement>()->object = std::move(shadow);
  }
  return handles;
}

std::vector<Tensor> Execution::shadow_inputs(const std::vector<Tensor>& variables) const {
  std::vector<Tensor> values;
  for (const Value& input : inputs_) {
    if (input.variable >= 0) {
      values.push_back(variables[static_cast<size_t>(input.variable)]);
    } else if (input.host.defined()) {
      values.push_back(input.host);
    } else {
      void* const bytes = input.address == nullptr ? nullptr : Memory::view(input.address);
      values.emplace_back(input.dtype, input.shape, bytes);
    }
  }
  return values;
}

void Execution::write_back(const std::vector<Tensor>& variables) const {
  for (size_t i = 0; i < variables.size(); ++i) {
    const HeldVariables::Image& image = variables_[i];
    if (!image.writes) continue;
    const Tensor value = behind(variables[i]).read();
    if (!(value.shape() == image.shape))
      misuse(concat("variable ", image.name, " changed its shape to ", value.shape()));
    if (value.bytes() != 0) std::memcpy(Memory::view(image.address), value.raw(), value.bytes());
  }
}

// A kernel may give another tensor where it was given memory: an input, say.
void Execution::write_outputs(const Tensor* outputs) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Value& output = outputs_[i];
    void* const bytes = Memory::view(output.address);
    if (op_.def().allocates_outputs || outputs[i].raw() == bytes) continue;
    if (outputs[i].bytes() != output.bytes())
      misuse(concat("output ", i, " was given as ", outputs[i]));
    if (output.bytes() != 0) std::memmove(bytes, outputs[i].raw(), output.bytes());
  }
}

}  // namespace treenail::simulated
