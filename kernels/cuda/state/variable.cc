// SPDX-License-Identifier: Apache-2.0
// Arithmetic on variables in place.
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/runtime/state/variable.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/operands_host.h"

namespace treenail::cuda {
namespace {

// variable = op(variable, value), by the element-wise op's kernel.
std::unique_ptr<Kernel> prepare_assign(const PrepareContext& p, const char* op) {
  const DType dtype = p.op().get_type("dtype");
  const Shape& shape = p.input_shape(1);
  const Shape shapes[] = {shape, shape};
  const std::string name = concat(op, "_", dtype_name(dtype));
  return make_launching_kernel(
      p, [dtype, function = GpuFunction(kept_name(name)), how = broadcast_of(shape, shapes)](
             RunContext& c, CudaDevice& device) {
        const Tensor& value = c.input(1);
        Variable& variable = variable_of_dtype(c.input(0), dtype);
        const Variable::Write write(variable);
        if (!(write.value().shape() == value.shape())) {
          throw invalid_argument("variable ", variable.name(), " has shape ", write.value().shape(),
                                 ", the value has shape ", value.shape());
        }
        const int64_t n = value.num_elements();
        const void* const at = write.value().raw();
        const void* const with = value.raw();
        function.launch(device, grid_for(device, n, 4), n, at, with, at, 0.0, how);
      });
}

std::unique_ptr<Kernel> prepare_add(const PrepareContext& p) { return prepare_assign(p, "Add"); }
std::unique_ptr<Kernel> prepare_sub(const PrepareContext& p) { return prepare_assign(p, "Sub"); }

}  // namespace

void register_variable_kernels(KernelRegistrations& r) {
  const TypeConstraint numbers = {
      "dtype",
      {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
       DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16, DType::kUInt32}};
  r.add("AssignAddVariableOp", {numbers}, prepare_add);
  r.add("AssignSubVariableOp", {numbers}, prepare_sub);
}

}  // namespace treenail::cuda
