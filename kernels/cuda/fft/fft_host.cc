// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fft/fft_host.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/cuda/driver/entries.h"

namespace treenail::cuda {
namespace {

constexpr size_t kWorkAlignment = 256;  // as memory that cuFFT takes itself has

struct Fft {
#define TN_ENTRY(name) decltype(&::name) name = nullptr;
#include "kernels/cuda/driver/fft_entries.inc"
#undef TN_ENTRY
};

Fft* open_fft() {
  auto table_ = std::make_unique<Fft>();
  Fft& table = *table_;
#define TN_ENTRY(name) TN_CUDA_ROW(name)
  const Entry entries[] = {
#include "kernels/cuda/driver/fft_entries.inc"
  };
#undef TN_ENTRY
  const std::string major = std::to_string(CUFFT_VER_MAJOR);
  load_entries("cuFFT, for Fourier transforms on a GPU,", concat("libcufft.so.", major).c_str(),
               concat("cuFFT ", major), entries);
  return table_.release();
}

const Fft& fft() {
  static std::atomic<Fft*> opened{nullptr};
  return made_once(opened, open_fft);
}

void check(cufftResult result, const char* call) {
  if (result == CUFFT_SUCCESS) return;
  if (result == CUFFT_ALLOC_FAILED)
    throw resource_exhausted(call, "(): no memory is left for cuFFT");
  if (result == CUFFT_EXEC_FAILED)
    throw error_of(Code::kUnavailable, {call, "(): the GPU has failed"});
  if (result == CUFFT_INVALID_SIZE || result == CUFFT_NOT_SUPPORTED)
    throw unimplemented("cuFFT has no transform of these sizes");
  throw internal_error(call, "(): cuFFT's result ", static_cast<int>(result));
}

template <class T>
T* as(void* at) {
  return static_cast<T*>(at);
}

std::byte* aligned_work(std::byte* scratch) {
  const auto at = reinterpret_cast<uintptr_t>(scratch);
  return scratch + (kWorkAlignment - at % kWorkAlignment) % kWorkAlignment;
}

}  // namespace

FftPlan::FftPlan(CudaDevice& device, cufftType type, std::span<const int64_t> extents,
                 int64_t batch)
    : device_(device), type_(type) {
  CUstream const stream = device_.enter();
  check(fft().cufftCreate(&plan_), "cufftCreate");
  try {
    make(extents, batch);
    check(fft().cufftSetStream(plan_, stream), "cufftSetStream");
  } catch (...) {
    fft().cufftDestroy(plan_);
    throw;
  }
}

void FftPlan::make(std::span<const int64_t> extents, int64_t batch) {
  check(fft().cufftSetAutoAllocation(plan_, 0), "cufftSetAutoAllocation");
  long long sizes[3];
  std::copy(extents.begin(), extents.end(), sizes);
  // Without embedding extents arrays lie densely.
  check(fft().cufftMakePlanMany64(plan_, static_cast<int>(extents.size()), sizes, nullptr, 1, 0,
                                  nullptr, 1, 0, type_, batch, &work_bytes_),
        "cufftMakePlanMany64");
}

// Nothing of it is queued any more. Of a lost device there is nothing to give back.
FftPlan::~FftPlan() {
  try {
    device_.enter();
    fft().cufftDestroy(plan_);
  } catch (const Error&) {
    return;
  }
}

size_t FftPlan::scratch_bytes() const {
  return work_bytes_ == 0 ? 0 : work_bytes_ + kWorkAlignment;
}

// What is launched has taken the work area's address along when a call returns, so each run has its
// own, and the next run may set another one. Work on the device is in order.
void FftPlan::launch(void* from, void* to, bool inverse, std::byte* scratch) const {
  device_.enter();
  const std::lock_guard lock(mutex_);
  if (work_bytes_ > 0)
    check(fft().cufftSetWorkArea(plan_, aligned_work(scratch)), "cufftSetWorkArea");
  check(execute(from, to, inverse ? CUFFT_INVERSE : CUFFT_FORWARD), "cufftExec");
}

cufftResult FftPlan::execute(void* from, void* to, int direction) const {
  const Fft& f = fft();
  switch (type_) {
    case CUFFT_C2C:
      return f.cufftExecC2C(plan_, as<cufftComplex>(from), as<cufftComplex>(to), direction);
    case CUFFT_R2C:
      return f.cufftExecR2C(plan_, as<cufftReal>(from), as<cufftComplex>(to));
    case CUFFT_C2R:
      return f.cufftExecC2R(plan_, as<cufftComplex>(from), as<cufftReal>(to));
    case CUFFT_Z2Z:
      return f.cufftExecZ2Z(plan_, as<cufftDoubleComplex>(from), as<cufftDoubleComplex>(to),
                            direction);
    case CUFFT_D2Z:
      return f.cufftExecD2Z(plan_, as<cufftDoubleReal>(from), as<cufftDoubleComplex>(to));
    default:
      return f.cufftExecZ2D(plan_, as<cufftDoubleComplex>(from), as<cufftDoubleReal>(to));
  }
}

}  // namespace treenail::cuda
