// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin along one axis.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/reductions/arg_types.h"
#include "kernels/host/arrays/axis_split.h"

namespace treenail::cuda {
namespace {

std::unique_ptr<Kernel> prepare_arg(const PrepareContext& p) {
  const host::AxisSplit split = host::split_at_axis(p, 1);
  const std::string name =
      concat(p.op().name(), "_", dtype_name(p.input_type(0)), "_", dtype_name(p.output_type(0)));
  // Along rows threads share one; down columns neighbours read what lies side by side.
  const int lanes = split.inner == 1 ? lanes_for(split.extent, 4) : 1;
  return make_launching_kernel(p, [function = GpuFunction(kept_name(name)), split, lanes](
                                      RunContext& c, CudaDevice& device) {
    const void* const x = c.input(0).raw();
    void* const y = c.output(0).raw();
    const Grid grid = grid_for(device, c.output(0).num_elements() * lanes);
    function.launch(device, grid, split.outer, split.extent, split.inner, lanes, x, y);
  });
}

}  // namespace

void register_arg_reduction_kernels(KernelRegistrations& r) {
#define TN_TYPE(T, name) dtype_of<T>,
  const TypeConstraint types = {"T", {TN_ARG_TYPES(TN_TYPE)}};
#undef TN_TYPE
  r.add("ArgMax", {types}, prepare_arg);
  r.add("ArgMin", {types}, prepare_arg);
}

}  // namespace treenail::cuda
