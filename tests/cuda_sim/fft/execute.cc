// SPDX-License-Identifier: Apache-2.0
// Transforms of the simulated cuFFT, in their streams. The work area is filled with rubbish first,
// and so is afterwards the input of transforms to real numbers, which the vendor's may overwrite.
#include <cstring>
#include <memory>

#include "tests/cuda_sim/fft/plan.h"
#include "tests/cuda_sim/link/driver_link.h"

namespace treenail::cuda_sim {
namespace {

constexpr int kRubbish = 0xa5;

class Queued {
 public:
  Queued(const Plan& plan, int direction, void* from, void* to)
      : transform_(plan.transform),
        stream_(plan.stream),
        work_area_(plan.own_work_area ? nullptr : plan.work_area),
        work_bytes_(plan.work_bytes),
        from_(from),
        to_(to) {
    transform_.direction = direction;
  }
  static void run(void* context, int lost) {
    const std::unique_ptr<Queued> self(static_cast<Queued*>(context));
    if (lost == 0) self->work();
  }

 private:
  void work() {
    if (work_area_ != nullptr && work_bytes_ > 0) {
      void* const area = view(work_area_, work_bytes_, true);
      if (area == nullptr) return;
      std::memset(area, kRubbish, work_bytes_);
    }
    const size_t bytes = transform_.bytes(transform_.from_real());
    void* const from = view(from_, bytes, transform_.to_real());
    void* const to = view(to_, transform_.bytes(transform_.to_real()), true);
    if (from == nullptr || to == nullptr) return;
    compute(transform_, from, to);
    if (transform_.to_real()) std::memset(from, kRubbish, bytes);
  }
  void* view(const void* at, size_t bytes, bool writes) const {
    return driver_link()->view(stream_, "cufftExec", at, bytes, writes ? 1 : 0);
  }

  Transform transform_;
  void* const stream_;
  void* const work_area_;
  const size_t work_bytes_;
  void *const from_, *const to_;
};

// Both of the complex type's alignment, real numbers too.
bool is_aligned(const Transform& transform, const void* at) {
  const uintptr_t number = transform.is_double() ? sizeof(double) : sizeof(float);
  return reinterpret_cast<uintptr_t>(at) % (2 * number) == 0;
}

cufftResult execute(cufftHandle handle, cufftType type, int direction, void* from, void* to) {
  const PlanInUse plan(handle);
  if (plan.get() == nullptr) return plan.why_not();
  if (!plan->made || plan->transform.type != type) return CUFFT_INVALID_PLAN;
  if (from == nullptr || to == nullptr || !is_aligned(plan->transform, from) ||
      !is_aligned(plan->transform, to) ||
      (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE))
    return CUFFT_INVALID_VALUE;
  if (!plan->own_work_area && plan->work_bytes > 0 && plan->work_area == nullptr)
    return CUFFT_INVALID_VALUE;
  if (from == to) return CUFFT_NOT_SUPPORTED;  // by this one
  auto queued = std::make_unique<Queued>(*plan.get(), direction, from, to);
  if (driver_link()->enqueue(plan->stream, &Queued::run, queued.get()) != 0)
    return CUFFT_EXEC_FAILED;
  static_cast<void>(queued.release());
  return CUFFT_SUCCESS;
}

}  // namespace
}  // namespace treenail::cuda_sim

using treenail::cuda_sim::execute;

CUSIM_FFT_ENTRY cufftExecC2C(cufftHandle plan, cufftComplex* from, cufftComplex* to,
                             int direction) {
  return execute(plan, CUFFT_C2C, direction, from, to);
}
CUSIM_FFT_ENTRY cufftExecR2C(cufftHandle plan, cufftReal* from, cufftComplex* to) {
  return execute(plan, CUFFT_R2C, CUFFT_FORWARD, from, to);
}
CUSIM_FFT_ENTRY cufftExecC2R(cufftHandle plan, cufftComplex* from, cufftReal* to) {
  return execute(plan, CUFFT_C2R, CUFFT_INVERSE, from, to);
}
CUSIM_FFT_ENTRY cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* from, cufftDoubleComplex* to,
                             int direction) {
  return execute(plan, CUFFT_Z2Z, direction, from, to);
}
CUSIM_FFT_ENTRY cufftExecD2Z(cufftHandle plan, cufftDoubleReal* from, cufftDoubleComplex* to) {
  return execute(plan, CUFFT_D2Z, CUFFT_FORWARD, from, to);
}
CUSIM_FFT_ENTRY cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* from, cufftDoubleReal* to) {
  return execute(plan, CUFFT_Z2D, CUFFT_INVERSE, from, to);
}
