// SPDX-License-Identifier: Apache-2.0
// OneHot and MatrixBandPart.
#include <cstdint>
#include <memory>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"

namespace treenail::cuda {
namespace {

std::unique_ptr<Kernel> prepare_one_hot(const PrepareContext& p) {
  const Shape &indices = p.input_shape(0), &output = p.output_shape(0);
  const int64_t given = p.op().get_int("axis");
  const int axis = given < 0 ? indices.rank() : static_cast<int>(given);
  const int64_t depth = output.dim(axis), suffix = indices.sub(axis, indices.rank()).num_elements();
  const auto name =
      concat("one_hot_", dtype_size(p.output_type(0)), "_", dtype_name(p.input_type(0)));
  return make_launching_kernel(p, [depth, suffix, function = GpuFunction(kept_name(name))](
                                      RunContext& c, CudaDevice& device) {
    const int64_t n = c.output(0).num_elements();
    function.launch(device, grid_for(device, n), n, depth, suffix, c.input(0).raw(),
                    c.input(2).raw(), c.input(3).raw(), c.output(0).raw());
  });
}

std::unique_ptr<Kernel> prepare_band_part(const PrepareContext& p) {
  const Shape& shape = p.output_shape(0);
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  const int64_t lower = scalar_int64(p.host_value(1)), upper = scalar_int64(p.host_value(2));
  const auto name = concat("band_part_", dtype_size(p.output_type(0)));
  return make_launching_kernel(
      p, [rows, columns, lower, upper, function = GpuFunction(kept_name(name))](
             RunContext& c, CudaDevice& device) {
        const int64_t n = c.output(0).num_elements();
        function.launch(device, grid_for(device, n), n, rows, columns, lower, upper,
                        c.input(0).raw(), c.output(0).raw());
      });
}

}  // namespace

void register_one_hot_kernels(KernelRegistrations& r) {
  r.add_plain("OneHot", prepare_one_hot);
  r.add_plain("MatrixBandPart", prepare_band_part);
}

}  // namespace treenail::cuda
