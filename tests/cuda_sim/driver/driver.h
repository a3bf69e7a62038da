// SPDX-License-Identifier: Apache-2.0
// The process's simulated driver: devices, handles, pinned memory, and how entry points answer. A
// handle that was never given out is refused, where the real driver may crash.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "framework/base/error.h"
#include "tests/cuda_sim/driver/device.h"
#include "tests/cuda_sim/driver/image.h"
#include "tests/cuda_sim/driver/pinned.h"

namespace treenail::cuda_sim {

// What an entry point returns; thrown where it is found.
struct Failure {
  CUresult result;
};

class Driver {
 public:
  Driver();

  CUresult initialise();
  // Errors: Failure of CUDA_ERROR_NOT_INITIALIZED before that, and in a forked child for ever.
  void check_ready() const;

  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  Device& device(CUdevice index) const;
  Device& context(CUcontext context) const;
  // Of this thread. Errors: Failure where there is none, or where the device is lost.
  Device& current() const;
  void set_current(Device* device);
  // Whose address it is; null: of none.
  Device* owner(const void* address) const;

  Stream& add_stream(Device& device);
  Stream& stream(CUstream handle) const;
  CUevent add_event(Device& device);
  std::shared_ptr<Event> event(CUevent handle) const;
  void remove_event(CUevent handle);
  // Libraries and kernels stay.
  const Image* add_image(const void* code);
  const Image& image(CUlibrary handle) const;
  void add_kernel(const KernelEntry* kernel);
  const KernelEntry& kernel(CUfunction handle) const;

  Pinned& pinned() { return pinned_; }
  // Calls `release` when all streams are past what they have now.
  void when_passed(const std::function<void()>& release);

  uint64_t seed() const { return seed_; }
  bool delays() const { return delays_; }
  void set_seed(uint64_t seed);
  void set_delays(bool on);

  std::atomic<int> version = CUDA_VERSION;
  std::atomic<bool> no_binary = false;

 private:
  std::vector<Stream*> used_streams() const;

  std::atomic<uint32_t> born_ = 0;  // the process's fork generation, plus one
  std::atomic<uint64_t> seed_ = 0;
  std::atomic<bool> delays_ = true;
  std::vector<std::unique_ptr<Device>> devices_;
  Pinned pinned_;
  mutable std::mutex mutex_;
  std::set<const void*> streams_, kernels_;
  std::map<const void*, std::unique_ptr<Image>> images_;
  std::map<CUevent, std::shared_ptr<Event>> events_;
};

Driver& driver();

inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Whether the device may use the range, with a violation if not.
bool usable(Device& device, const char* who, Use use, const void* at, size_t bytes);

// An entry point's body.
template <class F>
CUresult answer(F body) noexcept {
  try {
    return body(driver());
  } catch (const Failure& failure) {
    return failure.result;
  } catch (const Error& error) {
    return error.code() == Code::kResourceExhausted ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
  }
}

// The same of one that needs a current context, which may not be lost.
template <class F>
CUresult answer_in_context(F body) noexcept {
  return answer([&](Driver& driver) {
    driver.check_ready();
    return body(driver, driver.current());
  });
}

inline void require(bool condition, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) throw Failure{otherwise};
}

}  // namespace treenail::cuda_sim

// The declaration is cuda.h's, and so is the signature: another one does not compile.
#define CUSIM_ENTRY extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
