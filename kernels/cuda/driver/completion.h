// SPDX-License-Identifier: Apache-2.0
// What follows on the host when a stream is past a point: waiters are told, staged bytes go to
// their place. One thread for a device, which waits for the stream's events in their order:
// callbacks of the driver's own may not call the driver, and what waiters do next does.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace treenail::cuda {

class Completion {
 public:
  // What is done then, once; destroyed afterwards.
  class Then {
   public:
    virtual ~Then() = default;
    // `lost`: null, or why the stream will never get there.
    virtual void run(const std::exception_ptr& lost) noexcept = 0;
  };
  // make_then([...](const std::exception_ptr& lost) { ... })
  template <class F>
  static std::unique_ptr<Then> make_then(F f) {
    class Callable final : public Then {
     public:
      explicit Callable(F f) : f_(std::move(f)) {}
      void run(const std::exception_ptr& lost) noexcept override { f_(lost); }

     private:
      F f_;
    };
    return std::make_unique<Callable>(std::move(f));
  }

  // `device`: its name, for errors.
  explicit Completion(std::string device) : device_(std::move(device)) {}
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // When `stream`, whose context is current, has done what it holds now: by the thread, and by the
  // caller where the stream cannot be asked.
  void after(CUcontext context, CUstream stream, std::unique_ptr<Then> then) noexcept;

 private:
  struct Point {
    CUevent event;
    std::unique_ptr<Then> then;
  };
  CUevent take_event();
  bool start(CUcontext context);
  void work(CUcontext context) noexcept;
  std::exception_ptr error_of(CUresult result) const;
  void look_out(uint64_t seen) const;

  const std::string device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Point> points_;
  std::vector<CUevent> events_;  // to use again
  std::atomic<uint64_t> points_asked_{0};
  bool started_ = false;
};

}  // namespace treenail::cuda
