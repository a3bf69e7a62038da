// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated/queue.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "framework/base/error.h"
#include "framework/base/fork.h"

namespace treenail::simulated {

Queue::Queue(std::string device, int index)
    : device_(std::move(device)),
      index_(index),
      lost_error_(std::make_exception_ptr(
          Error(Code::kUnavailable, concat("the device ", device_, " was lost")))),
      forked_error_(std::make_exception_ptr(failed_precondition(
          "the process was forked; the child does not have the simulated device ", device_))) {
  seed(0);
}

bool Queue::forked() const {
  const uint32_t born = born_.load(std::memory_order_acquire);
  return born != 0 && born != fork_generation() + 1;
}

std::exception_ptr Queue::forked_error() const { return forked_error_; }

// No lock is touched in a child: a thread that is gone may hold it.
bool Queue::begin() {
  if (born_.load(std::memory_order_acquire) == 0) {
    const ForkBlock block;
    if (born_.load(std::memory_order_acquire) == 0) {
      start_thread();
      born_.store(fork_generation() + 1, std::memory_order_release);
    }
  }
  return !forked();
}

void Queue::start_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { work(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Queue::check() {
  if (!begin()) std::rethrow_exception(forked_error_);
  const std::lock_guard lock(mutex_);
  if (lost_ != nullptr) std::rethrow_exception(lost_);
}

void Queue::push(std::unique_ptr<Task> task) {
  if (!begin()) std::rethrow_exception(forked_error_);
  const std::lock_guard lock(mutex_);
  if (lost_ != nullptr) std::rethrow_exception(lost_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

bool Queue::push_always(std::unique_ptr<Task> task) noexcept {
  if (!begin()) return false;
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return true;
}

void Queue::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !held_ && !tasks_.empty(); });
    busy_ = true;
    if (const int us = delay_us(); us != 0) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(us));
      lock.lock();
    }
    if (!held_) {
      std::unique_ptr<Task> task = std::move(tasks_.front());
      tasks_.pop_front();
      const std::exception_ptr lost = lost_;
      if (until_lost_ > 0 && --until_lost_ == 0) lost_ = lost_error_;
      lock.unlock();
      task->run(lost);
      task.reset();
      lock.lock();
    }
    busy_ = false;
    changed_.notify_all();
  }
}

// Often none, and now and then so long that the host is far ahead.
int Queue::delay_us() {
  if (!delays_) return 0;
  const auto draw = static_cast<int>(random_() % 200);
  return draw == 0 ? 1000 : draw <= 100 ? 0 : draw - 100;
}

void Queue::seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  random_.seed(static_cast<std::minstd_rand::result_type>(2 * seed + 1 + 1000003 * index_));
}

void Queue::set_delays(bool on) {
  const std::lock_guard lock(mutex_);
  delays_ = on;
}

void Queue::lose(int64_t after) {
  const std::lock_guard lock(mutex_);
  until_lost_ = after > 0 ? after : 0;
  if (after <= 0) lost_ = lost_error_;
}

void Queue::lose(std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  if (lost_ == nullptr) lost_ = std::move(why);
}

void Queue::restore() {
  std::unique_lock lock(mutex_);
  if (lost_ != nullptr) changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  lost_ = nullptr;
  until_lost_ = 0;
}

void Queue::hold(bool on) {
  std::unique_lock lock(mutex_);
  held_ = on;
  changed_.notify_all();
  if (on) changed_.wait(lock, [this] { return !busy_; });
}

void Event::set(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  set_ = true;
  error_ = error;
  changed_.notify_all();
}

std::exception_ptr Event::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return set_; });
  return error_;
}

bool Event::reached() const {
  const std::lock_guard lock(mutex_);
  return set_;
}

}  // namespace treenail::simulated
