// SPDX-License-Identifier: Apache-2.0
// BiasAdd is an addition that broadcasts, BiasAddGrad a sum over all axes but the channels'.
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/operands_host.h"
#include "kernels/cuda/reductions/reduction_host.h"

namespace treenail::cuda {
namespace {

int channel_axis(const PrepareContext& p, const Shape& value) {
  return p.op().get_string("data_format") == "NCHW" ? 1 : value.rank() - 1;
}

std::unique_ptr<Kernel> prepare_add(const PrepareContext& p) {
  const Shape& value = p.input_shape(0);
  Shape bias = p.input_shape(1);
  for (int axis = channel_axis(p, value) + 1; axis < value.rank(); ++axis)
    bias = bias.inserted(bias.rank(), 1);
  const Shape shapes[] = {value, bias};
  const std::string name = concat("Add_", dtype_name(p.input_type(0)));
  return make_launching_kernel(
      p, [function = GpuFunction(kept_name(name)), how = broadcast_of(value, shapes)](
             RunContext& c, CudaDevice& device) {
        const int64_t n = c.output(0).num_elements();
        const void* const x = c.input(0).raw();
        const void* const b = c.input(1).raw();
        const void* const y = c.output(0).raw();
        function.launch(device, grid_for(device, n, 4), n, x, b, y, 0.0, how);
      });
}

std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const Shape& gradient = p.input_shape(0);
  std::vector<bool> reduced(static_cast<size_t>(gradient.rank()), true);
  reduced[static_cast<size_t>(channel_axis(p, gradient))] = false;
  return make_reduction_kernel(p, "Sum", gpu::Finish::kNone, reduced);
}

}  // namespace

void register_bias_kernels(KernelRegistrations& r) {
  r.add("BiasAdd",
        {{"T",
          {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32,
           DType::kInt64}}},
        prepare_add);
  r.add("BiasAddGrad",
        {{"T",
          {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32,
           DType::kInt64}}},
        prepare_gradient);
}

}  // namespace treenail::cuda
