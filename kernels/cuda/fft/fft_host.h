// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by NVIDIA's cuFFT, opened when the first one is prepared.
#pragma once

#include <cufft.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// Of a batch of arrays that lie densely, complex ones and real ones as C++ has them; not
// normalised.
class FftPlan {
 public:
  // `extents`: of one array of real numbers, or of complex ones for those between complex numbers.
  // Errors: FailedPrecondition where cuFFT is absent; Unimplemented for sizes that it has not.
  FftPlan(CudaDevice& device, cufftType type, std::span<const int64_t> extents, int64_t batch);
  ~FftPlan();
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;

  size_t scratch_bytes() const;
  // Queued. Input and output do not overlap; transforms to real numbers spoil their input, and
  // those from real numbers want it aligned to two of them. `inverse`: between complex numbers.
  // Errors: as CudaDevice::check().
  void launch(void* from, void* to, bool inverse, std::byte* scratch) const;

 private:
  void make(std::span<const int64_t> extents, int64_t batch);
  cufftResult execute(void* from, void* to, int direction) const;

  CudaDevice& device_;
  const cufftType type_;
  cufftHandle plan_ = 0;
  size_t work_bytes_ = 0;
  mutable std::mutex mutex_;  // a plan is for one thread at a time
};

}  // namespace treenail::cuda
