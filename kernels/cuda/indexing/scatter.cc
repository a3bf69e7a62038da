// SPDX-License-Identifier: Apache-2.0
// Rows of updates into arrays and variables: ScatterNd, TensorScatter ops, ResourceScatter ops.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/op/index_check.h"
#include "framework/runtime/state/variable.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/merge_host.h"

namespace treenail::cuda {
namespace {

// By the end of an op's name.
struct Scatter {
  std::string_view name;
  std::string_view operation;  // "": the last one stays
};
constexpr Scatter kScatters[] = {{"Update", ""},      {"Add", "Add"},     {"Sub", "Subtract"},
                                 {"Mul", "Multiply"}, {"Min", "Minimum"}, {"Max", "Maximum"}};

std::string_view operation_of(const PrepareContext& p) {
  const std::string_view op = p.op().name();
  return std::ranges::find_if(kScatters, [&](const Scatter& s) { return op.ends_with(s.name); })
      ->operation;
}

void apply(CudaDevice& device, const RowOrder& order, std::string_view operation,
           const Tensor& updates, Tensor& target) {
  if (operation.empty()) return put_rows(device, order.rows(), updates, target);
  merge_rows(device, order.rows(), operation, true, updates, target);
}

void scatter_nd(CudaDevice& device, std::string_view operation, const Tensor& indices,
                const Tensor& updates, Tensor& target, Failure failure) {
  const gpu::Places places = places_in(target.shape(), indices.shape());
  if (places.n == 0) return;
  const RowOrder order(device, places, indices);
  apply(device, order, operation, updates, target);
  report_bad_place(order.fault(), indices, target.shape(), failure);
}

std::unique_ptr<Kernel> prepare_scatter_nd(const PrepareContext& p) {
  return make_launching_kernel(p, [](RunContext& c, CudaDevice& device, Failure failure) {
    Tensor& y = c.output(0);
    device.zero(y.raw(), y.bytes());
    scatter_nd(device, "Add", c.input(0), c.input(1), y, failure);
  });
}

std::unique_ptr<Kernel> prepare_tensor_scatter(const PrepareContext& p) {
  return make_launching_kernel(
      p, [operation = operation_of(p)](RunContext& c, CudaDevice& device, Failure failure) {
        Tensor& y = c.output(0);
        if (y.raw() != c.input(0).raw()) device.copy(y.raw(), c.input(0).raw(), y.bytes());
        scatter_nd(device, operation, c.input(1), c.input(2), y, failure);
      });
}

// The variable's shape is known when it is run.
std::unique_ptr<Kernel> prepare_variable_scatter_nd(const PrepareContext& p) {
  return make_launching_kernel(p, [dtype = p.op().get_type("dtype"), operation = operation_of(p)](
                                      RunContext& c, CudaDevice& device, Failure failure) {
    const Variable::Write write(variable_of_dtype(c.input(0), dtype));
    check_nd_updates(write.value().shape(), c.input(1).shape(), c.input(2).shape());
    scatter_nd(device, operation, c.input(1), c.input(2), write.value(), failure);
  });
}

std::unique_ptr<Kernel> prepare_variable_scatter(const PrepareContext& p) {
  return make_launching_kernel(p, [dtype = p.op().get_type("dtype"), operation = operation_of(p)](
                                      RunContext& c, CudaDevice& device, Failure failure) {
    const Tensor &indices = c.input(1), &updates = c.input(2);
    const Variable::Write write(variable_of_dtype(c.input(0), dtype));
    Tensor& value = write.value();
    check_row_updates(value.shape(), indices.shape(), updates.shape());
    if (indices.num_elements() == 0) return;
    const RowOrder order(device, rows_in(value.dim(0), indices.shape()), indices);
    apply(device, order, operation, updates, value);
    report_bad_row(order.fault(), indices, value.dim(0), failure);
  });
}

}  // namespace

void register_scatter_kernels(KernelRegistrations& r) {
  r.add("ScatterNd", {{"T", merge_types("Add")}}, prepare_scatter_nd);
  r.add_plain("TensorScatterUpdate", prepare_tensor_scatter);
  r.add("TensorScatterAdd", {{"T", merge_types("Add")}}, prepare_tensor_scatter);
  r.add("TensorScatterSub", {{"T", merge_types("Subtract")}}, prepare_tensor_scatter);
  r.add_plain("ResourceScatterNdUpdate", prepare_variable_scatter_nd);
  r.add("ResourceScatterNdAdd", {{"dtype", merge_types("Add")}}, prepare_variable_scatter_nd);
  r.add("ResourceScatterNdSub", {{"dtype", merge_types("Subtract")}}, prepare_variable_scatter_nd);
  r.add_plain("ResourceScatterUpdate", prepare_variable_scatter);
  for (const Scatter& scatter : kScatters) {
    if (scatter.operation.empty()) continue;
    r.add("ResourceScatter" + std::string(scatter.name),
          {{"dtype", merge_types(scatter.operation)}}, prepare_variable_scatter);
  }
}

}  // namespace treenail::cuda
