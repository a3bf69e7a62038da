// SPDX-License-Identifier: Apache-2.0
// A While whose iterations overlap: an iteration begins when its condition can be told, and gets
// each value as soon as the one before is done with it. So do the states that the body uses, which
// makes the results those of one iteration after the other.
#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/host/control/loop.h"

namespace treenail::host {
namespace {

// It is there until all has ended. Everything happens in units of the run, so that the condition,
// which waits for nothing, may be computed there.
class OverlappingLoop {
 public:
  OverlappingLoop(const Loop& loop, std::vector<Tensor> values, LoopCalls calls, int64_t most);
  // Of an iteration whose condition has held.
  void begin() noexcept;
  // The caller's own error, before that of any iteration.
  void interrupt(std::exception_ptr error) noexcept;

 protected:
  ~OverlappingLoop() = default;
  // With the values behind the last iteration, or an error. This may go meanwhile.
  virtual void over(std::vector<Tensor> values, std::exception_ptr error) noexcept = 0;

 private:
  struct Iteration final : public PartsEnd {
    explicit Iteration(OverlappingLoop& loop) : loop(loop) {}
    void ended(std::exception_ptr error) noexcept override { loop.ended(*this, std::move(error)); }
    void arrived(std::span<const int32_t> results) noexcept override {
      loop.arrived(*this, results);
    }

    OverlappingLoop& loop;
    std::unique_ptr<FunctionCall> call;
    int64_t number = -1;
    bool running = false;
    bool given_up = false;  // what it gets from the one before does not come
  };
  static constexpr int64_t kNoError = std::numeric_limits<int64_t>::max();

  Iteration& iteration(int64_t number) {
    return iterations_[static_cast<size_t>(number) % iterations_.size()];
  }
  void ended(Iteration& which, std::exception_ptr error) noexcept;
  void arrived(Iteration& from, std::span<const int32_t> results) noexcept;
  // With the lock held.
  void advance(std::unique_lock<std::mutex> lock) noexcept;
  bool may_decide() const;
  std::vector<Tensor> known() const;
  void begin_next();
  // The iteration after that one where it is under way and is still to get values; else null.
  Iteration* next_of(const Iteration& from);
  void give_up_after(const Iteration& from);
  // Whether the value may be handed on; else the loop has failed.
  bool fits(const Iteration& from, size_t i, const Tensor& value);
  static Error located(const Error& error, int64_t number) {
    return error.with_prefix(concat("iteration ", number, ": "));
  }
  static std::exception_ptr own_error(const std::exception_ptr& error, int64_t number);
  void fail(int64_t number, std::exception_ptr error);
  void finish() noexcept;

  const Loop& loop_;
  const std::unique_ptr<FunctionCall> cond_;
  std::vector<bool> shared_;           // by value: all iterations have the same
  std::mutex mutex_;                   // never held across a kernel; guards the rest
  std::vector<Iteration> iterations_;  // a ring
  int64_t next_ = 0;                   // the iteration that is still to begin
  std::vector<Tensor> values_;         // of that one, as far as they are there; then states
  std::vector<bool> there_;
  int running_ = 0;
  bool deciding_ = false;  // a thread computes the condition
  bool over_ = false;      // there are no more iterations
  int64_t failed_ = kNoError;
  std::exception_ptr error_;
};

OverlappingLoop::OverlappingLoop(const Loop& loop, std::vector<Tensor> values, LoopCalls calls,
                                 int64_t most)
    : loop_(loop), cond_(std::move(calls.cond)), values_(std::move(values)) {
  const FunctionCall& body = *calls.body;
  for (size_t i = 0; i < values_.size(); ++i)
    shared_.push_back(!loop.live[i] || body.hands_on(static_cast<int>(i)));
  values_.resize(values_.size() + static_cast<size_t>(body.num_states()));
  there_.resize(values_.size(), true);
  shared_.resize(values_.size(), false);
  iterations_.reserve(static_cast<size_t>(most));
  for (int64_t i = 0; i < most; ++i) iterations_.emplace_back(*this);
  iterations_[0].call = std::move(calls.body);
}

void OverlappingLoop::begin() noexcept {
  std::unique_lock lock(mutex_);
  try {
    begin_next();
  } catch (...) {
    fail(next_, std::current_exception());
  }
  advance(std::move(lock));
}

void OverlappingLoop::interrupt(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  fail(-1, std::move(error));
}

bool OverlappingLoop::may_decide() const {
  if (deciding_ || over_ || failed_ != kNoError) return false;
  const Iteration& own = iterations_[static_cast<size_t>(next_) % iterations_.size()];
  if (own.running) return false;
  for (size_t i = 0; i < loop_.decide.size(); ++i)
    if (loop_.decide[i] && !there_[i]) return false;
  return true;
}

// What the condition is told: it reads nothing else.
std::vector<Tensor> OverlappingLoop::known() const {
  std::vector<Tensor> known(loop_.decide.size());
  for (size_t i = 0; i < known.size(); ++i)
    if (loop_.decide[i]) known[i] = values_[i];
  return known;
}

// Whoever changes something goes on from there without letting go of the lock, so that one of them
// sees the end.
void OverlappingLoop::advance(std::unique_lock<std::mutex> lock) noexcept {
  while (may_decide()) {
    deciding_ = true;
    std::vector<Tensor> arguments = known();
    cond_->iteration = next_;
    lock.unlock();
    Tensor holds;
    std::exception_ptr error;
    try {
      cond_->run(arguments, {&holds, 1});
    } catch (const Error& found) {
      error = std::make_exception_ptr(located(found, next_));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    deciding_ = false;
    try {
      if (error != nullptr) std::rethrow_exception(error);
      over_ = !is_true(holds);
      if (!over_ && failed_ == kNoError) begin_next();
    } catch (...) {
      fail(next_, std::current_exception());
      cond_->cancel_waits();
    }
  }
  if (running_ > 0 || deciding_ || (!over_ && failed_ == kNoError)) return;
  lock.unlock();
  finish();
}

// Calls only make ready here, so that the lock may be held.
void OverlappingLoop::begin_next() {
  Iteration& next = iteration(next_);
  if (next.call == nullptr) next.call = iterations_[0].call->another();
  next.number = next.call->iteration = next_;
  next.call->open(next);
  next.running = true;
  next.given_up = false;
  ++running_;
  ++next_;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!there_[i]) continue;
    next.call->give(static_cast<int>(i), shared_[i] ? values_[i] : std::move(values_[i]));
    there_[i] = shared_[i];
  }
}

OverlappingLoop::Iteration* OverlappingLoop::next_of(const Iteration& from) {
  if (from.number + 1 >= next_) return nullptr;
  Iteration& next = iteration(from.number + 1);
  return next.running && !next.given_up ? &next : nullptr;
}

void OverlappingLoop::give_up_after(const Iteration& from) {
  Iteration* const next = next_of(from);
  if (next == nullptr) return;
  next->given_up = true;
  next->call->give_up();
}

void OverlappingLoop::arrived(Iteration& from, std::span<const int32_t> results) noexcept {
  std::unique_lock lock(mutex_);
  for (const int32_t result : results) {
    const auto i = static_cast<size_t>(result);
    if (shared_[i]) continue;
    Tensor value = from.call->take(result);
    if (!fits(from, i, value)) continue;
    if (from.number + 1 < next_) {
      Iteration* const next = next_of(from);
      if (next != nullptr) next->call->give(result, std::move(value));
    } else {
      values_[i] = std::move(value);
      there_[i] = true;
    }
  }
  advance(std::move(lock));
}

bool OverlappingLoop::fits(const Iteration& from, size_t i, const Tensor& value) {
  if (i >= loop_.live.size()) return true;
  try {
    loop_.check_invariant(i, value);
    return true;
  } catch (const Error& error) {
    fail(from.number, std::make_exception_ptr(located(error, from.number)));
    cond_->cancel_waits();
    give_up_after(from);
    return false;
  }
}

void OverlappingLoop::ended(Iteration& which, std::exception_ptr error) noexcept {
  std::unique_lock lock(mutex_);
  which.running = false;
  --running_;
  if (error != nullptr) {
    fail(which.number, loop_.body.waits() ? std::move(error) : own_error(error, which.number));
    give_up_after(which);
  }
  advance(std::move(lock));
}

// Of a body whose nodes know of no call around them.
std::exception_ptr OverlappingLoop::own_error(const std::exception_ptr& error, int64_t number) {
  try {
    try {
      std::rethrow_exception(error);
    } catch (const BodyError& body) {
      if (body.error == nullptr) return error;
      std::rethrow_exception(body.error);
    }
  } catch (const Error& own) {
    return std::make_exception_ptr(located(own, number));
  } catch (...) {
    return std::current_exception();
  }
}

// The first iteration's error counts, and one of the loop's own before what failed elsewhere.
void OverlappingLoop::fail(int64_t number, std::exception_ptr error) {
  const bool own = !is_of_another(error);
  const bool replaces = error_ == nullptr || (own && (number < failed_ || is_of_another(error_)));
  if (!replaces) return;
  failed_ = number;
  error_ = std::move(error);
}

void OverlappingLoop::finish() noexcept {
  std::exception_ptr error = failed_ != kNoError ? std::move(error_) : nullptr;
  values_.resize(loop_.live.size());
  over(std::move(values_), std::move(error));
}

class StartedIterations final : public OverlappingLoop {
 public:
  StartedIterations(const Loop& loop, const RunContext& c, Done done, std::vector<Tensor> values,
                    LoopCalls calls, int64_t most)
      : OverlappingLoop(loop, std::move(values), std::move(calls), most),
        context_(c),
        done_(done) {}

 private:
  void over(std::vector<Tensor> values, std::exception_ptr error) noexcept override {
    const Done done = done_;
    if (error == nullptr) set_outputs(context_, values);
    delete this;  // the frames go before the run may
    if (error != nullptr) return done.fail(std::move(error));
    done();
  }

  RunContext context_;
  const Done done_;
};

class IterationsAtOnce final : public OverlappingLoop {
 public:
  using OverlappingLoop::OverlappingLoop;
  std::vector<Tensor>& results() {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return results_;
  }

 private:
  void over(std::vector<Tensor> values, std::exception_ptr error) noexcept override {
    results_ = std::move(values);
    failure_ = std::move(error);
  }

  std::vector<Tensor> results_;
  std::exception_ptr failure_;
};

}  // namespace

void start_overlapping(const Loop& loop, const RunContext& c, Done done, std::vector<Tensor> values,
                       LoopCalls calls, int64_t most) {
  (new StartedIterations(loop, c, done, std::move(values), std::move(calls), most))->begin();
}

void run_overlapping(const Loop& loop, RunContext& c, std::vector<Tensor> values, LoopCalls calls,
                     int64_t most) {
  FunctionCall& first = *calls.body;
  IterationsAtOnce iterations(loop, std::move(values), std::move(calls), most);
  std::exception_ptr interrupted;  // maybe when the last iteration has ended already
  first.work([&] { iterations.begin(); },
             [&](std::exception_ptr error) {
               interrupted = error;
               iterations.interrupt(std::move(error));
             });
  if (interrupted != nullptr) std::rethrow_exception(interrupted);
  set_outputs(c, iterations.results());
}

}  // namespace treenail::host
