// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/completion.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "framework/base/detached_thread.h"
#include "framework/base/error.h"
#include "framework/base/spin.h"
#include "kernels/cuda/driver/driver.h"

namespace treenail::cuda {
namespace {

constexpr std::chrono::microseconds kLookOut(50);

}  // namespace

std::exception_ptr Completion::error_of(CUresult result) const {
  if (result == CUDA_SUCCESS) return nullptr;
  return std::make_exception_ptr(
      treenail::error_of(Code::kUnavailable, {device_, " has failed: ", result_text(result)}));
}

CUevent Completion::take_event() {
  if (!events_.empty()) {
    CUevent const event = events_.back();
    events_.pop_back();
    return event;
  }
  CUevent event = nullptr;
  check(driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return event;
}

bool Completion::start(CUcontext context) {
  struct Start {
    Completion* self;
    CUcontext context;
  };
  auto start = std::make_unique<Start>(Start{this, context});
  const auto entry = [](void* argument) -> void* {
    const std::unique_ptr<Start> given(static_cast<Start*>(argument));
    given->self->work(given->context);
    return nullptr;
  };
  if (const int error = start_detached_thread(entry, start.get()); error != 0)
    throw resource_exhausted("no thread can be made for a GPU: error ", error);
  static_cast<void>(start.release());
  return true;
}

// The event is recorded under the lock, so that points are in the stream's order.
void Completion::after(CUcontext context, CUstream stream, std::unique_ptr<Then> then) noexcept {
  std::exception_ptr error;
  try {
    const std::lock_guard lock(mutex_);
    if (!started_) started_ = start(context);
    CUevent const event = take_event();
    const CUresult result = driver().cuEventRecord(event, stream);
    if (result == CUDA_SUCCESS) {
      points_.push_back({event, std::move(then)});
      points_asked_.fetch_add(1, std::memory_order_release);
      changed_.notify_one();
      return;
    }
    events_.push_back(event);
    error = error_of(result);
  } catch (...) {
    error = std::current_exception();
  }
  then->run(error);
}

// One step is often followed by the next: who is awake already saves the time of waking up, which
// is as long as a small step.
void Completion::look_out(uint64_t seen) const {
  const auto end = std::chrono::steady_clock::now() + kLookOut;
  while (points_asked_.load(std::memory_order_acquire) == seen &&
         std::chrono::steady_clock::now() < end)
    spin_pause();
}

// For ever: devices do not go.
void Completion::work(CUcontext context) noexcept {
  CUresult current = driver().cuCtxSetCurrent(context);
  std::unique_lock lock(mutex_);
  while (true) {
    if (points_.empty()) {
      const uint64_t seen = points_asked_.load(std::memory_order_relaxed);
      lock.unlock();
      look_out(seen);
      lock.lock();
    }
    changed_.wait(lock, [this] { return !points_.empty(); });
    Point point = std::move(points_.front());
    points_.pop_front();
    lock.unlock();
    if (current == CUDA_SUCCESS) current = driver().cuEventSynchronize(point.event);
    if (current == CUDA_ERROR_DEINITIALIZED) return;  // the process ends
    point.then->run(error_of(current));
    point.then.reset();
    lock.lock();
    events_.push_back(point.event);
  }
}

}  // namespace treenail::cuda
