// SPDX-License-Identifier: Apache-2.0
// MirrorPad and MirrorPadGrad.
#include <cstdint>
#include <memory>

#include "kernels/cuda/arrays/mirror_space.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/add_n_host.h"
#include "kernels/cuda/elementwise/added_as_host.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::cuda {
namespace {

using gpu::MirrorAxis;
using gpu::MirrorSpace;

MirrorAxis axis_of(int64_t inner, int64_t before, int64_t after) {
  return {gpu::divisor_of(inner), gpu::divisor_of(before + inner + after), before};
}

void add_axis(MirrorSpace& s, MirrorAxis axis) {
  if (s.rank > 0) {
    const MirrorAxis& last = s.axis[s.rank - 1];
    axis.inner_stride = last.inner_stride * last.inner.size;
    axis.outer_stride = last.outer_stride * last.outer.size;
  }
  s.axis[s.rank++] = axis;
}

// An array of elements, `numbers` of which are moved together; neighbouring axes without borders
// are one.
MirrorSpace space_of(const PrepareContext& p, const Shape& inner, int numbers) {
  MirrorSpace s;
  s.offset = p.op().get_string("mode") == "REFLECT" ? 1 : 0;
  if (inner.num_elements() == 0) return s;
  const Tensor& paddings = p.host_value(1);
  const auto border = [&](int i, int side) -> int64_t {
    const int at = 2 * i + side;
    return paddings.dtype() == DType::kInt32 ? paddings.data<int32_t>()[at]
                                             : paddings.data<int64_t>()[at];
  };
  int64_t plain = numbers;
  for (int i = inner.rank(); i-- > 0;) {
    if (border(i, 0) == 0 && border(i, 1) == 0) {
      plain *= inner.dim(i);
      continue;
    }
    if (plain > 1) add_axis(s, axis_of(plain, 0, 0));
    plain = 1;
    add_axis(s, axis_of(inner.dim(i), border(i, 0), border(i, 1)));
  }
  if (plain > 1) add_axis(s, axis_of(plain, 0, 0));
  return s;
}

std::unique_ptr<Kernel> make_kernel(const PrepareContext& p, MirrorSpace space,
                                    const char* function, int numbers) {
  space.n = p.output_shape(0).num_elements() * numbers;
  return make_launching_kernel(
      p, [space, function = GpuFunction(function)](RunContext& c, CudaDevice& device) {
        if (space.n == 0) return;
        const void* const from = c.input(0).raw();
        function.launch(device, grid_for(device, space.n), space, from, c.output(0).raw());
      });
}

std::unique_ptr<Kernel> prepare_pad(const PrepareContext& p) {
  const std::string name = concat("mirror_pad_", dtype_size(p.output_type(0)));
  return make_kernel(p, space_of(p, p.input_shape(0), 1), kept_name(name), 1);
}

std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const AddedAs how = added_as(p.output_type(0));
  const std::string name = concat("mirror_fold_", dtype_name(how.dtype));
  return make_kernel(p, space_of(p, p.output_shape(0), how.numbers), kept_name(name), how.numbers);
}

}  // namespace

void register_mirror_pad_kernels(KernelRegistrations& r) {
  r.add_plain("MirrorPad", prepare_pad);
  r.add("MirrorPadGrad", {{"T", added_types()}}, prepare_gradient);
}

}  // namespace treenail::cuda
