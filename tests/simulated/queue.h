// SPDX-License-Identifier: Apache-2.0
// The queue of a simulated device: one thread that does one task after the other, late and out of
// step with whoever asked. A lost device does none any more; it says so to each task.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

namespace treenail::simulated {

class Task {
 public:
  virtual ~Task() = default;
  // `lost`: null, or why the device does nothing any more.
  virtual void run(const std::exception_ptr& lost) noexcept = 0;
};

// make_task([...](const std::exception_ptr& lost) { ... })
template <class F>
std::unique_ptr<Task> make_task(F f) {
  class Callable final : public Task {
   public:
    explicit Callable(F f) : f_(std::move(f)) {}
    void run(const std::exception_ptr& lost) noexcept override { f_(lost); }

   private:
    F f_;
  };
  return std::make_unique<Callable>(std::move(f));
}

class Queue {
 public:
  // `device`: its full name.
  Queue(std::string device, int index);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Whether anything can be asked for. The first call of anything begins the queue. Errors:
  // Unavailable where the device was lost; FailedPrecondition in a forked child.
  void check();
  // Errors: the same.
  void push(std::unique_ptr<Task> task);
  // Also where the device was lost; false, and nothing happens, in a forked child.
  bool push_always(std::unique_ptr<Task> task) noexcept;
  bool forked() const;
  std::exception_ptr forked_error() const;

  void seed(uint64_t seed);
  void set_delays(bool on);
  // After so many more tasks.
  void lose(int64_t after);
  void lose(std::exception_ptr why);
  // Once what is queued was told of the loss.
  void restore();
  // While it is held it begins no task.
  void hold(bool on);

 private:
  bool begin();  // false in a forked child
  void start_thread();
  void work() noexcept;
  int delay_us();  // the mutex is held

  const std::string device_;
  const int index_;
  const std::exception_ptr lost_error_, forked_error_;
  std::atomic<uint32_t> born_{0};  // the process's fork generation, plus one
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Task>> tasks_;
  std::exception_ptr lost_;
  int64_t until_lost_ = 0;  // tasks; 0: never
  bool busy_ = false;
  bool held_ = false;
  bool delays_ = true;
  std::minstd_rand random_;
};

// A point that one queue has reached, for another to wait for.
class Event {
 public:
  void set(const std::exception_ptr& error);
  std::exception_ptr wait();
  bool reached() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
  std::exception_ptr error_;
};

}  // namespace treenail::simulated
