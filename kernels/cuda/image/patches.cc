// SPDX-License-Identifier: Apache-2.0
// ExtractImagePatches, by the size of elements, and its adjoint.
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/image/patch_space.h"
#include "kernels/host/image/patch_geometry.h"

namespace treenail::cuda {
namespace {

gpu::PatchAxis axis_of(const WindowAxis& a) {
  gpu::PatchAxis axis;
  axis.input = gpu::divisor_of(a.input);
  axis.output = gpu::divisor_of(a.output);
  axis.taps = gpu::divisor_of(a.taps);
  axis.stride = gpu::divisor_of(a.stride);
  axis.dilation = a.dilation;
  axis.pad_before = a.pad_before;
  return axis;
}

gpu::PatchSpace space_of(const host::Patches& p) {
  gpu::PatchSpace space;
  space.images = p.batch;
  space.channels = gpu::divisor_of(p.channels);
  space.rows = axis_of(p.rows);
  space.columns = axis_of(p.columns);
  return space;
}

// From input i, whose images, or those it becomes, have a shape.
std::unique_ptr<Kernel> prepare_from(const PrepareContext& p, const std::string& name, int i,
                                     const Shape& images) {
  if (p.output_shape(0).num_elements() == 0)
    return make_launching_kernel(p, [](RunContext&, CudaDevice&) {});
  if (p.input_shape(i).num_elements() == 0) return prepare_zeros(p);  // the sum of nothing
  return make_launching_kernel(
      p, [function = GpuFunction(kept_name(name)), space = space_of(host::Patches(p.op(), images)),
          i](RunContext& c, CudaDevice& device) {
        const void *const from = c.input(i).raw(), *const to = c.output(0).raw();
        function.launch(device, grid_for(device, c.output(0).num_elements()), space, from, to);
      });
}

std::unique_ptr<Kernel> prepare_patches(const PrepareContext& p) {
  const std::string name = concat("patches_", dtype_size(p.input_type(0)));
  return prepare_from(p, name, 0, p.input_shape(0));
}

std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const std::string name = concat("gather_patches_", dtype_name(p.input_type(1)));
  return prepare_from(p, name, 1, p.output_shape(0));
}

}  // namespace

void register_patches_kernels(KernelRegistrations& r) {
  r.add_plain("ExtractImagePatches", prepare_patches);
  r.add("ExtractImagePatchesGrad",
        {{"T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}}},
        prepare_gradient);
}

}  // namespace treenail::cuda
