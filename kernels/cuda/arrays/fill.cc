// SPDX-License-Identifier: Apache-2.0
// Fill, ZerosLike and OnesLike.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/arrays/fill_host.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/language/bits.h"

namespace treenail::cuda {
namespace {

constinit const GpuFunction kFill1("fill_1"), kFill2("fill_2"), kFill4("fill_4"), kFill8("fill_8"),
    kFill16("fill_16");

template <class T>
void fill_as(CudaDevice& device, const GpuFunction& function, const void* value, Tensor& y) {
  const int64_t n = y.num_elements();
  function.launch(device, grid_for(device, n), n, static_cast<const T*>(value),
                  static_cast<T*>(y.raw()));
}

std::unique_ptr<Kernel> prepare_fill(const PrepareContext& p) {
  return make_launching_kernel(
      p, [](RunContext& c, CudaDevice& device) { fill(device, c.input(1).raw(), c.output(0)); });
}

Tensor one_of(DType dtype) {
  Tensor one(dtype, Shape());
  dispatch<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
           uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>(
      dtype, [&]<class T>() { *one.data<T>() = static_cast<T>(1.0f); });
  return one;
}

std::unique_ptr<Kernel> prepare_ones(const PrepareContext& p) {
  const Tensor one = one_of(p.output_type(0));
  auto kernel = make_launching_kernel(p, [one](RunContext& c, CudaDevice& device) {
    device.copy_in(c.scratch(), one.raw(), one.bytes());
    fill(device, c.scratch(), c.output(0));
  });
  kernel->scratch_bytes = one.bytes();
  return kernel;
}

}  // namespace

void fill(CudaDevice& device, const void* value, Tensor& y) {
  switch (dtype_size(y.dtype())) {
    case 1:
      return fill_as<uint8_t>(device, kFill1, value, y);
    case 2:
      return fill_as<uint16_t>(device, kFill2, value, y);
    case 4:
      return fill_as<uint32_t>(device, kFill4, value, y);
    case 8:
      return fill_as<uint64_t>(device, kFill8, value, y);
    default:
      return fill_as<gpu::Bits128>(device, kFill16, value, y);
  }
}

void register_fill_kernels(KernelRegistrations& r) {
  r.add_plain("Fill", prepare_fill);
  r.add_plain("ZerosLike", prepare_zeros);
  r.add_plain("OnesLike", prepare_ones);
}

}  // namespace treenail::cuda
