// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling of images and volumes and their gradients. Where channels are second
// each is an image of its own, with one channel.
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/pooling/pool_space.h"
#include "kernels/host/pooling/pool.h"

namespace treenail::cuda {
namespace {

using gpu::PoolSpace;
using host::Pool;
using Address = const void*;

gpu::PoolAxis axis_of(const WindowAxis& a) {
  return {gpu::divisor_of(a.input), gpu::divisor_of(a.output), gpu::divisor_of(a.stride), a.taps,
          a.pad_before};
}

// A pooling that is not empty. Threads each do as many channels as kGroupSize says, or one.
struct Launches {
  PoolSpace space;
  int64_t each;

  Launches(const Pool& p, DType dtype) : each(16 / static_cast<int64_t>(dtype_size(dtype))) {
    const int64_t channels = p.channels_second ? 1 : p.channels;
    if (channels % each != 0) each = 1;
    space.images = p.channels_second ? p.batch * p.channels : p.batch;
    space.channels = gpu::divisor_of(channels);
    space.groups = gpu::divisor_of(channels / each);
    space.axis[0] = axis_of(p.planes);
    space.axis[1] = axis_of(p.rows);
    space.axis[2] = axis_of(p.columns);
  }
  // For a thread to each group of a result.
  Grid grid(const CudaDevice& device, const Tensor& result) const {
    return grid_for(device, result.num_elements() / each);
  }
};

// These inputs, images like `image` or what it is pooled to, become output 0.
template <class... Inputs>
std::unique_ptr<Kernel> prepare_pass(const PrepareContext& p, const char* what, const Shape& image,
                                     Inputs... inputs) {
  const Pool pool(p.op(), image);
  if (pool.empty()) return prepare_zeros(p);
  const DType dtype = p.output_type(0);
  return make_launching_kernel(p, [function = function_for(what, dtype), l = Launches(pool, dtype),
                                   inputs...](RunContext& c, CudaDevice& device) {
    function.launch(device, l.grid(device, c.output(0)), l.space, Address(c.input(inputs).raw())...,
                    Address(c.output(0).raw()));
  });
}

std::unique_ptr<Kernel> prepare_max(const PrepareContext& p) {
  return prepare_pass(p, "max_pool", p.input_shape(0), 0);
}
std::unique_ptr<Kernel> prepare_average(const PrepareContext& p) {
  return prepare_pass(p, "average_pool", p.input_shape(0), 0);
}
std::unique_ptr<Kernel> prepare_max_gradient(const PrepareContext& p) {
  return prepare_pass(p, "max_pool_gradient", p.input_shape(0), 0, 1, 2);
}
std::unique_ptr<Kernel> prepare_max_second_gradient(const PrepareContext& p) {
  return prepare_pass(p, "max_pool_second_gradient", p.input_shape(0), 0, 1, 2);
}
std::unique_ptr<Kernel> prepare_average_gradient(const PrepareContext& p) {
  return prepare_pass(p, "average_pool_gradient", p.output_shape(0), 1);
}

std::unique_ptr<Kernel> prepare_positions(const PrepareContext& p) {
  const Pool pool(p.op(), p.input_shape(0));
  if (pool.empty()) return prepare_zeros(p);
  const bool with_batch = p.op().get_bool("include_batch_in_index");
  host::check_positions(pool, with_batch, p.output_type(1));
  const std::string what = concat("max_pool_positions_", dtype_name(p.output_type(0)));
  return make_launching_kernel(p, [function = function_for(what, p.output_type(1)),
                                   space = Launches(pool, p.output_type(0)).space,
                                   with_batch](RunContext& c, CudaDevice& device) {
    function.launch(device, grid_for(device, c.output(0).num_elements()), space, with_batch,
                    Address(c.input(0).raw()), Address(c.output(0).raw()),
                    Address(c.output(1).raw()));
  });
}

}  // namespace

void register_pooling_kernels(KernelRegistrations& r) {
  const TypeConstraint type = {
      "T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}};
  for (const char* op : {"MaxPool", "MaxPool3D"}) r.add(op, {type}, prepare_max);
  for (const char* op : {"AvgPool", "AvgPool3D"}) r.add(op, {type}, prepare_average);
  for (const char* op : {"MaxPoolGrad", "MaxPool3DGrad"}) r.add(op, {type}, prepare_max_gradient);
  for (const char* op : {"MaxPoolGradGrad", "MaxPool3DGradGrad"})
    r.add(op, {type}, prepare_max_second_gradient);
  for (const char* op : {"AvgPoolGrad", "AvgPool3DGrad"})
    r.add(op, {type}, prepare_average_gradient);
  r.add("MaxPoolWithArgmax", {type, {"Targmax", {DType::kInt32, DType::kInt64}}},
        prepare_positions);
}

}  // namespace treenail::cuda
