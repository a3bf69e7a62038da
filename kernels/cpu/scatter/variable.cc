// SPDX-License-Identifier: Apache-2.0
// Arithmetic on variables in place: adding, subtracting, and the scatter operations.
#include "framework/runtime/state/variable.h"

#include "framework/base/error.h"
#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/scatter/row_ops.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr int64_t kGrain = 16384;

template <RowOp kOp>
KernelPtr prepare_assign(const PrepareContext& p) {
  const DType dtype = p.op().get_type("dtype");
  const double cost = 30 + 0.5 * static_cast<double>(p.input_shape(1).num_elements());
  return make_kernel(
      [dtype, op = row_fn(kOp, dtype),
       bytes = static_cast<int64_t>(dtype_size(dtype))](RunContext& c) {
        const Tensor& value = c.input(1);
        Variable& variable = variable_of_dtype(c.input(0), dtype);
        const Variable::Write write(variable);
        if (!(write.value().shape() == value.shape())) {
          throw invalid_argument("variable ", variable.name(), " has shape ", write.value().shape(),
                                 ", the value has shape ", value.shape());
        }
        auto* to = static_cast<std::byte*>(write.value().raw());
        const auto* from = static_cast<const std::byte*>(value.raw());
        c.parallel_for(value.num_elements(), kGrain, 0.5, [&](int64_t begin, int64_t end) {
          op(to + begin * bytes, from + begin * bytes, end - begin, false);
        });
      },
      cost);
}

template <RowOp kOp>
KernelPtr prepare_scatter(const PrepareContext& p) {
  const DType dtype = p.op().get_type("dtype");
  const double cost =
      100 + static_cast<double>(p.input_shape(2).num_elements() + p.input_shape(1).num_elements());
  return make_kernel(
      [dtype, op = row_fn(kOp, dtype)](RunContext& c) {
        const Tensor& indices = c.input(1);
        const Tensor& updates = c.input(2);
        const Variable::Write write(variable_of_dtype(c.input(0), dtype));
        Tensor& value = write.value();
        check_row_updates(value.shape(), indices.shape(), updates.shape());
        check_indices("indices", indices, value.dim(0));
        const RowTarget target{static_cast<std::byte*>(value.raw()), value.dim(0),
                               value.shape().removed(0).num_elements(),
                               static_cast<int64_t>(dtype_size(dtype))};
        scatter_rows(c, op, target, indices, static_cast<const std::byte*>(updates.raw()),
                     updates.rank() == 0);
      },
      cost);
}

}  // namespace

void register_variable_kernels(KernelRegistry& r) {
  r.add("AssignAddVariableOp", {}, prepare_assign<RowOp::kAdd>);
  r.add("AssignSubVariableOp", {}, prepare_assign<RowOp::kSubtract>);
  r.add("ResourceScatterAdd", {}, prepare_scatter<RowOp::kAdd>);
  r.add("ResourceScatterSub", {}, prepare_scatter<RowOp::kSubtract>);
  r.add("ResourceScatterMul", {}, prepare_scatter<RowOp::kMultiply>);
  r.add("ResourceScatterMin", {}, prepare_scatter<RowOp::kMinimum>);
  r.add("ResourceScatterMax", {}, prepare_scatter<RowOp::kMaximum>);
}

}  // namespace treenail::cpu
