// SPDX-License-Identifier: Apache-2.0
// What a library keeps for each GPU of the process, as its handle, made when it is first asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "framework/base/fork.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

// A static variable; what it holds stays until the process ends.
template <class T>
class PerDevice {
 public:
  // `make` returns a new T*; the device's context is current then, and after the call.
  template <class Make>
  T& of(CudaDevice& device, Make make) {
    device.enter();
    const std::lock_guard lock(made_once(mutex_, [] { return new ForkMutex; }));
    const auto index = static_cast<size_t>(*device.name().index);
    if (made_.size() <= index) made_.resize(index + 1, nullptr);
    if (made_[index] == nullptr) made_[index] = make();
    return *made_[index];
  }

 private:
  std::atomic<ForkMutex*> mutex_{nullptr};
  std::vector<T*> made_;
};

}  // namespace treenail::cuda
