// SPDX-License-Identifier: Apache-2.0
// A GPU as a device of Treenail: one stream is its queue, and the primary context of the driver,
// which other libraries of the process share, its home. The context is made when something is first
// asked of the device: a program that stays on the CPUs pays nothing for it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/device/device.h"
#include "kernels/cuda/driver/completion.h"
#include "kernels/cuda/driver/memory.h"
#include "kernels/cuda/driver/staging.h"

namespace treenail::cuda {

inline constexpr char kKind[] = "GPU";

class CudaDevice final : public Device {
 public:
  // Device `ordinal` of the driver as number `index` of the kind.
  CudaDevice(int index, CUdevice ordinal);

  // The host's kernels would be asked to fold with constants that lie here.
  bool folds() const override { return false; }
  void* allocate(size_t bytes) override;
  void deallocate(void* memory, size_t bytes) noexcept override;
  AllocatorStats stats() const override;
  void copy_in(void* to, const void* from_host, size_t bytes) override;
  void copy_out(void* to_host, const void* from, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void copy_from_peer(void* to, Device& peer, const void* from, size_t bytes) override;
  void notify(Waiter& waiter) noexcept override;
  // Queued.
  void fill_bytes(void* at, unsigned char value, size_t bytes);
  void zero(void* at, size_t bytes) { fill_bytes(at, 0, bytes); }
  // Calls it when the queue has done what it holds now, in the order of such calls, by a thread
  // that may call the driver; with null, or with why the device was lost.
  template <class F>
  void when_done(F then) {
    queue_then(Completion::make_then(std::move(then)));
  }

  // The context is current for this thread afterwards. Errors: Unavailable where the device is lost
  // or cannot be had; FailedPrecondition in the child of a fork.
  CUstream enter();
  // The result of a call on the device. Errors: as driver.h's check(), with the device's name.
  void check(CUresult result, const char* call);
  int processors() const { return processors_; }
  // "8.0"
  std::string capability() const;
  const std::string& model() const { return model_; }

 private:
  struct Home {  // what there is once the device was used
    CUcontext context;
    CUstream stream;
    CUevent drained;  // for give_region_back()
  };
  Home& home();
  Home* make_home();
  void queue_then(std::unique_ptr<Completion::Then> then);
  bool forked() const;
  void record(std::exception_ptr loss);
  static void* take_region(void* self, size_t bytes);
  static void give_region_back(void* self, void* region);

  const CUdevice ordinal_;
  std::string model_;
  int processors_ = 0, major_ = 0, minor_ = 0;
  Memory memory_;
  Staging staging_;
  Completion completion_;
  std::atomic<Home*> home_{nullptr};
  const uint32_t born_;  // the process's fork generation when the driver was opened
  std::mutex mutex_;     // guards what follows
  std::exception_ptr lost_;
  std::atomic<bool> is_lost_{false};
};

// Those that the driver shows, in its order. Errors: FailedPrecondition, in one sentence.
std::vector<std::unique_ptr<Device>> make_devices();

}  // namespace treenail::cuda
