// SPDX-License-Identifier: Apache-2.0
// Plans of the simulated cuFFT. Those of more than a few points want a work area.
#include "tests/cuda_sim/fft/plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "tests/cuda_sim/link/driver_link.h"

namespace treenail::cuda_sim {
namespace {

constexpr size_t kWorkBytes = 8192;
constexpr int64_t kFewPoints = 4;
constexpr uintptr_t kWorkAlignment = 256;

struct Plans {
  std::mutex mutex;
  std::map<cufftHandle, std::unique_ptr<Plan>> all;
  cufftHandle next = 1;
};
Plans& plans() {
  static auto* const all = new Plans;
  return *all;
}

bool is_type(cufftType type) {
  constexpr cufftType kTypes[] = {CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

}  // namespace

int64_t Transform::points() const {
  int64_t points = 1;
  for (const int64_t extent : extents) points *= extent;
  return points;
}

int64_t Transform::spectrum() const {
  const bool half = from_real() || to_real();
  return half ? points() / extents.back() * (extents.back() / 2 + 1) : points();
}

size_t Transform::bytes(bool real) const {
  const size_t number = is_double() ? sizeof(double) : sizeof(float);
  return static_cast<size_t>(batch * (real ? points() : 2 * spectrum())) * number;
}

PlanInUse::PlanInUse(cufftHandle handle) {
  const std::lock_guard lock(plans().mutex);
  const auto found = plans().all.find(handle);
  plan_ = found == plans().all.end() ? nullptr : found->second.get();
  why_not_ = plan_ == nullptr ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
  if (plan_ == nullptr || !plan_->busy.exchange(true)) return;
  plan_ = nullptr;
  why_not_ = CUFFT_INTERNAL_ERROR;
}

PlanInUse::~PlanInUse() {
  if (plan_ != nullptr) plan_->busy = false;
}

}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

// The real one needs a driver, too.
CUSIM_FFT_ENTRY cufftCreate(cufftHandle* handle) {
  if (handle == nullptr) return CUFFT_INVALID_VALUE;
  if (driver_link() == nullptr) return CUFFT_SETUP_FAILED;
  const std::lock_guard lock(plans().mutex);
  *handle = plans().next++;
  plans().all[*handle] = std::make_unique<Plan>();
  return CUFFT_SUCCESS;
}

CUSIM_FFT_ENTRY cufftDestroy(cufftHandle handle) {
  {
    const PlanInUse plan(handle);
    if (plan.get() == nullptr) return plan.why_not();
  }
  const std::lock_guard lock(plans().mutex);
  plans().all.erase(handle);
  return CUFFT_SUCCESS;
}

CUSIM_FFT_ENTRY cufftSetAutoAllocation(cufftHandle handle, int automatic) {
  const PlanInUse plan(handle);
  if (plan.get() == nullptr) return plan.why_not();
  if (plan->made) return CUFFT_INVALID_PLAN;
  plan->own_work_area = automatic != 0;
  return CUFFT_SUCCESS;
}

// Dense arrays only, which are what no embedding extents mean.
CUSIM_FFT_ENTRY cufftMakePlanMany64(cufftHandle handle, int rank, long long* extents,
                                    long long* in_embed, long long, long long, long long* out_embed,
                                    long long, long long, cufftType type, long long batch,
                                    size_t* work_bytes) {
  const PlanInUse plan(handle);
  if (plan.get() == nullptr) return plan.why_not();
  if (plan->made) return CUFFT_INVALID_PLAN;
  if (!is_type(type)) return CUFFT_INVALID_TYPE;
  if (in_embed != nullptr || out_embed != nullptr) return CUFFT_NOT_SUPPORTED;
  if (rank < 1 || rank > 3 || extents == nullptr || work_bytes == nullptr)
    return CUFFT_INVALID_VALUE;
  if (batch < 1 || std::any_of(extents, extents + rank, [](long long n) { return n < 1; }))
    return CUFFT_INVALID_SIZE;
  plan->transform = {type, {extents, extents + rank}, batch};
  plan->made = true;
  plan->work_bytes = plan->transform.points() > kFewPoints ? kWorkBytes : 0;
  *work_bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}

CUSIM_FFT_ENTRY cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const PlanInUse plan(handle);
  if (plan.get() == nullptr) return plan.why_not();
  plan->stream = stream;
  return CUFFT_SUCCESS;
}

CUSIM_FFT_ENTRY cufftSetWorkArea(cufftHandle handle, void* area) {
  const PlanInUse plan(handle);
  if (plan.get() == nullptr) return plan.why_not();
  if (!plan->made) return CUFFT_INVALID_PLAN;
  if (area == nullptr || reinterpret_cast<uintptr_t>(area) % kWorkAlignment != 0)
    return CUFFT_INVALID_VALUE;
  plan->work_area = area;
  return CUFFT_SUCCESS;
}
