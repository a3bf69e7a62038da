// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/immediate.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/plan/handle_info.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/allocator.h"

namespace treenail {
namespace {

// Scratch of one run; freed at scope's end.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : bytes_(bytes) {
    if (bytes_ != 0) data_ = static_cast<std::byte*>(Allocator::host().allocate(bytes_));
  }
  ~Scratch() {
    if (data_ != nullptr) Allocator::host().deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return data_; }

 private:
  size_t bytes_;
  std::byte* data_ = nullptr;
};

// Everything about the inputs that is known once they are computed; constants only where the op
// wants host values.
std::vector<ValueInfo> concrete_infos(const OpInstance& op, std::span<const Tensor> inputs) {
  std::vector<ValueInfo> infos(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    infos[i].dtype = inputs[i].dtype();
    infos[i].shape = inputs[i].shape();
    if (op.input_def(static_cast<int>(i)).host) {
      infos[i].constant = std::make_shared<const Tensor>(inputs[i]);
      infos[i].value = partial_value_of(inputs[i]);
    } else if (inputs[i].dtype() == DType::kResource && inputs[i].num_elements() == 1) {
      infos[i].handle = handle_info_of(inputs[i]);
    }
  }
  return infos;
}

void check_outputs(const OpInstance& op, std::span<const Tensor> outputs,
                   std::span<const ValueInfo> infos) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && outputs[i].dtype() == op.output_type(static_cast<int>(i)) &&
        infos[i].shape.compatible(outputs[i].shape())) {
      continue;
    }
    throw internal_error("the kernel gave output ", i, " as ", outputs[i], ", its shape rule says ",
                         op.output_type(static_cast<int>(i)), infos[i].shape);
  }
}

bool depends_on_shapes_alone(const OpInstance& op) {
  const OpDef& def = op.def();
  if (def.stateful || def.random || def.allocates_outputs) return false;
  for (int i = 0; i < op.num_inputs(); ++i) {
    if (op.input_def(i).host || !is_plain(op.input_type(i))) return false;
  }
  return true;
}

}  // namespace

const Shape& ArrayPrepareContext::output_shape(int i) const {
  if (i < 0 || static_cast<size_t>(i) >= outputs_.size()) {
    throw internal_error("the kernel of ", op_.name(), " asks for the shape of output ", i,
                         ", which is not known before it runs");
  }
  return outputs_[static_cast<size_t>(i)];
}

const Tensor& ArrayPrepareContext::host_value(int i) const {
  const Tensor* const value = host_values_[static_cast<size_t>(i)];
  if (value == nullptr) {
    throw internal_error("the kernel of ", op_.name(), " asks for the value of input ", i,
                         ", which is no host input");
  }
  return *value;
}

IntrusivePtr<RandomCounter> ArrayPrepareContext::random_counter() const {
  return random_counter_of(*services_.resources, services_.counter_name.empty()
                                                     ? services_.node_name
                                                     : services_.counter_name);
}

Tensor view_as(const Tensor& tensor, DType dtype, const Shape& shape) {
  const std::ptrdiff_t offset = static_cast<const std::byte*>(tensor.raw()) -
                                static_cast<const std::byte*>(tensor.buffer()->data());
  return Tensor(dtype, shape, tensor.buffer(), static_cast<size_t>(offset));
}

std::vector<Tensor> run_prepared(const OpInstance& op, const PreparedKernel& prepared,
                                 std::span<const Tensor> inputs, const CancellationToken* token) {
  const size_t num_inputs = inputs.size(), num_outputs = static_cast<size_t>(op.num_outputs());
  std::vector<Tensor> values(num_inputs + num_outputs);
  std::vector<int32_t> slots(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i) {
    values[i] = inputs[i];
    slots[i] = static_cast<int32_t>(i);
  }
  if (!op.def().allocates_outputs) {
    for (size_t i = 0; i < num_outputs; ++i) {
      values[num_inputs + i] =
          Tensor(op.output_type(static_cast<int>(i)), prepared.output_shapes[i]);
    }
  }
  const Scratch scratch(prepared.kernel->scratch_bytes);
  RunContext context;
  context.values_ = values.data();
  context.input_slots_ = slots.data();
  context.output_slot_ = static_cast<int32_t>(num_inputs);
  context.scratch_ = scratch.data();
  context.token_ = token;
  prepared.kernel->run(context);
  return {std::make_move_iterator(values.begin() + static_cast<std::ptrdiff_t>(num_inputs)),
          std::make_move_iterator(values.end())};
}

std::vector<Tensor> run_immediately(const OpInstance& op, std::span<const Tensor> inputs,
                                    const NodeServices& services, const CancellationToken* token,
                                    PreparedKernel* keep) {
  const size_t num_inputs = inputs.size();
  const size_t num_outputs = static_cast<size_t>(op.num_outputs());
  const std::vector<ValueInfo> infos = concrete_infos(op, inputs);
  std::vector<const ValueInfo*> info_pointers(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i) info_pointers[i] = &infos[i];
  std::vector<ValueInfo> output_infos(num_outputs);
  infer_shapes(op, info_pointers, output_infos);

  if (op.def().view_of >= 0) {
    const Tensor& source = inputs[static_cast<size_t>(op.def().view_of)];
    return {view_as(source, op.output_type(0), output_infos[0].shape.shape())};
  }
  std::vector<Shape> shapes(num_inputs);
  std::vector<const Tensor*> host_values(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i) {
    shapes[i] = inputs[i].shape();
    if (infos[i].constant) host_values[i] = infos[i].constant.get();
  }
  const bool all_known =
      std::all_of(output_infos.begin(), output_infos.end(),
                  [](const ValueInfo& info) { return info.shape.fully_known(); });
  if (!all_known && !op.def().allocates_outputs) {
    throw internal_error("the shape rule of ", op.name(),
                         " leaves an output shape unknown with all inputs known");
  }
  PreparedKernel prepared;
  if (all_known) {
    for (const ValueInfo& info : output_infos) prepared.output_shapes.push_back(info.shape.shape());
  }

  const ArrayPrepareContext prepare(op, shapes, prepared.output_shapes, host_values, services);
  prepared.kernel = KernelRegistry::instance().find(op)(prepare);
  std::vector<Tensor> outputs = run_prepared(op, prepared, inputs, token);
  if (op.def().allocates_outputs) check_outputs(op, outputs, output_infos);
  if (keep != nullptr && depends_on_shapes_alone(op)) *keep = std::move(prepared);
  return outputs;
}

std::vector<Tensor> fold_constant(const OpInstance& op, std::span<const ValueInfo* const> inputs,
                                  std::span<const ValueInfo> outputs) {
  if (op.def().stateful || outputs.empty()) return {};
  std::vector<Tensor> tensors;
  for (const ValueInfo* info : inputs) {
    if (!info->constant || !is_plain(info->dtype)) return {};
    tensors.push_back(*info->constant);
  }
  for (const ValueInfo& info : outputs) {
    const int64_t elements = info.shape.num_elements();
    if (!is_plain(info.dtype) ||
        elements > kMaxFoldedBytes / static_cast<int64_t>(dtype_size(info.dtype)))
      return {};
  }
  try {
    ResourceManager no_state;
    std::vector<Tensor> result = run_immediately(op, tensors, {&no_state, {}}, nullptr);
    for (const Tensor& tensor : result) {
      if (static_cast<int64_t>(tensor.bytes()) > kMaxFoldedBytes) return {};
    }
    return result;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace treenail
