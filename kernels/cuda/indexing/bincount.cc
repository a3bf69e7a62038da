// SPDX-License-Identifier: Apache-2.0
// Bincount: weights are added to the bins that numbers choose, in their order.
#include <memory>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/merge_host.h"
#include "kernels/host/arrays/counting.h"

namespace treenail::cuda {
namespace {

Tensor one_on(CudaDevice& device, DType dtype) {
  Tensor one(dtype, Shape());
  dispatch<int32_t, int64_t, float, double>(dtype, [&]<class T>() { *one.data<T>() = T(1); });
  Tensor there(dtype, Shape(), &device);
  device.copy_in(there.raw(), one.raw(), one.bytes());
  return there;
}

void count(CudaDevice& device, const Tensor& numbers, const Tensor& weights, Tensor& bins,
           Failure failure) {
  device.zero(bins.raw(), bins.bytes());
  gpu::Places places = rows_in(bins.num_elements(), numbers.shape());
  if (places.n == 0) return;
  places.skips = gpu::kSkipsBeyond;
  const RowOrder order(device, places, numbers);
  const bool weighted = weights.num_elements() > 0;
  merge_rows(device, order.rows(), "Add", true, weighted ? weights : one_on(device, bins.dtype()),
             bins);
  order.fault().report(numbers.raw(), numbers.dtype(), failure, [](int64_t place, int64_t number) {
    host::throw_negative_number(place, number);
  });
}

std::unique_ptr<Kernel> prepare_bincount(const PrepareContext& p) {
  return make_launching_kernel(p, [](RunContext& c, CudaDevice& device, Failure failure) {
    count(device, c.input(0), c.input(2), c.output(0), failure);
  });
}

}  // namespace

void register_bincount_kernels(KernelRegistrations& r) {
  r.add_plain("Bincount", prepare_bincount);
}

}  // namespace treenail::cuda
