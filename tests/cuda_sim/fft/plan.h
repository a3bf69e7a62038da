// SPDX-License-Identifier: Apache-2.0
// What the handles of the simulated cuFFT stand for, and what is asked of a stream.
#pragma once

#include <cufft.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

// The declaration is cufft.h's, and so is the signature: another one does not compile.
#define CUSIM_FFT_ENTRY extern "C" __attribute__((visibility("default"))) cufftResult CUFFTAPI

namespace treenail::cuda_sim {

struct Transform {
  cufftType type = CUFFT_C2C;
  std::vector<int64_t> extents;  // the last axis last
  int64_t batch = 0;
  int direction = CUFFT_FORWARD;

  bool is_double() const { return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D; }
  bool from_real() const { return type == CUFFT_R2C || type == CUFFT_D2Z; }
  bool to_real() const { return type == CUFFT_C2R || type == CUFFT_Z2D; }
  int64_t points() const;         // of one array of real numbers, or of complex ones between such
  int64_t spectrum() const;       // of one array of complex numbers
  size_t bytes(bool real) const;  // of a batch of either
};

struct Plan {
  Transform transform;
  bool made = false, own_work_area = true;
  size_t work_bytes = 0;
  void* work_area = nullptr;
  cudaStream_t stream = nullptr;
  std::atomic<bool> busy{false};
};

// A plan while a call has it; null where the handle is none, or another call has it now: the
// vendor's plans are for one thread at a time.
class PlanInUse {
 public:
  explicit PlanInUse(cufftHandle handle);
  ~PlanInUse();
  PlanInUse(const PlanInUse&) = delete;
  PlanInUse& operator=(const PlanInUse&) = delete;
  Plan* operator->() const { return plan_; }
  Plan* get() const { return plan_; }
  cufftResult why_not() const { return why_not_; }

 private:
  Plan* plan_;
  cufftResult why_not_ = CUFFT_SUCCESS;
};

// On memory that the host can read.
void compute(const Transform& transform, const void* from, void* to);

}  // namespace treenail::cuda_sim
