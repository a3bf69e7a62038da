// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/gather.cc that add: ScatterNd, TensorScatterAdd, TensorScatterSub, and
// ResourceScatterNdAdd, ResourceScatterNdSub on variables.
#include <algorithm>
#include <cstring>

#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/variable.h"
#include "kernels/cpu/scatter/row_ops.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// Adds rows of updates into `output`, which indices [..., depth] address.
void add_at(RunContext& c, RowFn op, Tensor& output, const Tensor& indices, const Tensor& updates) {
  auto* numbers = reinterpret_cast<int64_t*>(c.scratch());
  const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
  const Shape& shape = output.shape();
  const RowTarget target{static_cast<std::byte*>(output.raw()), shape.sub(0, depth).num_elements(),
                         shape.sub(depth, shape.rank()).num_elements(),
                         static_cast<int64_t>(dtype_size(output.dtype()))};
  const int64_t count = indices.shape().sub(0, indices.rank() - 1).num_elements();
  scatter_rows(c, op, target, numbers, count, static_cast<const std::byte*>(updates.raw()));
}

size_t numbers_bytes(const Shape& indices) {
  return static_cast<size_t>(indices.sub(0, indices.rank() - 1).num_elements()) * sizeof(int64_t);
}

KernelPtr prepare_scatter_nd(const PrepareContext& p) {
  const double cost = 50 + static_cast<double>(p.output_shape(0).num_elements()) * 0.5 +
                      static_cast<double>(p.input_shape(1).num_elements());
  return make_kernel(
      [op = row_fn(RowOp::kAdd, p.output_type(0)), shape = p.output_shape(0)](RunContext& c) {
        flatten_indices(c.input(0), shape, reinterpret_cast<int64_t*>(c.scratch()));
        fill_zeros(c, c.output(0));
        add_at(c, op, c.output(0), c.input(0), c.input(1));
      },
      cost, numbers_bytes(p.input_shape(0)));
}

template <RowOp kOp>
KernelPtr prepare_tensor_scatter(const PrepareContext& p) {
  const double cost = 50 + static_cast<double>(p.output_shape(0).num_elements()) * 0.5 +
                      static_cast<double>(p.input_shape(2).num_elements());
  return make_kernel(
      [op = row_fn(kOp, p.output_type(0)), shape = p.output_shape(0)](RunContext& c) {
        flatten_indices(c.input(1), shape, reinterpret_cast<int64_t*>(c.scratch()));
        Tensor& output = c.output(0);
        if (output.raw() != c.input(0).raw()) {
          auto* to = static_cast<std::byte*>(output.raw());
          const auto* from = static_cast<const std::byte*>(c.input(0).raw());
          c.parallel_for(static_cast<int64_t>(output.bytes()), int64_t{128} << 10, 0.1,
                         [&](int64_t begin, int64_t end) {
                           std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
                         });
        }
        add_at(c, op, output, c.input(1), c.input(2));
      },
      cost, numbers_bytes(p.input_shape(1)));
}

// The variable's shape is known when it is run.
template <RowOp kOp>
KernelPtr prepare_variable_scatter(const PrepareContext& p) {
  const DType dtype = p.op().get_type("dtype");
  const double cost = 50 + static_cast<double>(p.input_shape(2).num_elements());
  return make_kernel(
      [dtype, op = row_fn(kOp, dtype)](RunContext& c) {
        const Tensor& indices = c.input(1);
        const Tensor& updates = c.input(2);
        const Variable::Write write(variable_of_dtype(c.input(0), dtype));
        Tensor& value = write.value();
        check_nd_updates(value.shape(), indices.shape(), updates.shape());
        flatten_indices(indices, value.shape(), reinterpret_cast<int64_t*>(c.scratch()));
        add_at(c, op, value, indices, updates);
      },
      cost, numbers_bytes(p.input_shape(1)));
}

}  // namespace

void register_scatter_kernels(KernelRegistry& r) {
  r.add("ScatterNd", {}, prepare_scatter_nd);
  r.add("TensorScatterAdd", {}, prepare_tensor_scatter<RowOp::kAdd>);
  r.add("TensorScatterSub", {}, prepare_tensor_scatter<RowOp::kSubtract>);
  r.add("ResourceScatterNdAdd", {}, prepare_variable_scatter<RowOp::kAdd>);
  r.add("ResourceScatterNdSub", {}, prepare_variable_scatter<RowOp::kSubtract>);
}

}  // namespace treenail::cpu
