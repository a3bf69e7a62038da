// SPDX-License-Identifier: Apache-2.0
// The nodes of one frame, as dependencies allow: of a run's plan, or of a body that it calls. Where
// a body waits its activation lies on the heap beside that of its caller, and both share the run's
// queue (run_queue.h): calls within calls take no stack, and no thread waits for any of them. Who
// ends the last node of a body puts that end into the queue; whoever takes it from there tells the
// caller's kernel, which begins the next call or ends.
//
// After an error only synchronous nodes before it still begin, and calls for the sake of these, so
// that the error reported is the first one whatever the timing; what waits is cancelled, and its
// errors count for nothing. Before: by position in the canonical order, then by iteration, from the
// run's plan inwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/run_queue.h"

namespace treenail {

struct ActivationCaller {
  Activation* activation = nullptr;  // null: a run calls, by its own plan
  int32_t node = 0;                  // of its plan
  int64_t iteration = -1;
  CallEnd* end = nullptr;
  PartsEnd* parts = nullptr;  // of an iteration whose arguments come one by one
};

class Activation final : public Done::Target, public Failure::Target, public Device::Waiter {
 public:
  using Caller = ActivationCaller;

  // Lies still until nothing of the frame runs or waits any more.
  Activation(RunQueue& queue, const Plan& plan, Frame& frame, const Caller& caller = {});
  ~Activation() { frame_.activation = nullptr; }
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;

  // Of a body, in a unit of the queue: from here on to CallEnd::ended(), in which this may go.
  void begin();
  // Of an iteration: an argument, or a state, is there; no more of them come. The last of them may
  // be followed by the end.
  void give(size_t feed);
  void give_up();
  // Of a run's own: what is ready from the beginning; the value of a feed that is there.
  void enqueue();
  void arrive(size_t feed);
  // How many of these nodes, none of them twice, are still to be done.
  int64_t want(std::span<const int32_t> nodes);

  RunQueue& queue() const { return queue_; }
  const Plan& plan() const { return plan_; }
  const Caller& caller() const { return caller_; }
  int depth() const { return depth_; }  // calls around
  int64_t executed() const { return executed_; }
  const std::exception_ptr& error() const { return error_; }
  // The error in flight is the caller's own and goes before that of any node.
  void fail_run() noexcept;

  void ended(int32_t node, std::exception_ptr error) noexcept override;
  void failed(int32_t node, std::exception_ptr error) noexcept override;
  bool superseded(int32_t node) const noexcept override;
  void reached(std::exception_ptr error) noexcept override;

 private:
  friend class RunQueue;
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kOver = -2;   // the unit that tells the caller
  static constexpr int32_t kParts = -3;  // the unit that tells of results
  static constexpr int64_t kNoError = std::numeric_limits<int64_t>::max();

  // A unit that was taken from the queue.
  void run_unit(int32_t unit) noexcept;
  int32_t pop_unit();
  bool has_units() const { return ready_count_ > 0 || over_ || parts_queued_; }

  void run_chain(int32_t first, int64_t& executed);
  bool begin_node(const PlanNode& p, int32_t n);
  int32_t ready_successors(const PlanNode& p, int32_t n, int32_t mine);
  void end_body() noexcept;
  void tell_parts() noexcept;
  bool drain() noexcept;
  std::exception_ptr outcome() const;
  // With the queue's mutex held.
  void push_heap(int32_t n);
  void push_ready(int32_t n);
  uint32_t push_successors(std::span<const int32_t> successors);
  uint32_t push_end();
  void link_unit();
  uint32_t note_done(int32_t n);
  uint32_t note_ends(const Numbers& results);
  uint32_t drop_args(size_t count);

  static int64_t place_of(int32_t node, int64_t iteration);
  bool counts_for_nothing(const PlanNode& p, int32_t n) const;
  bool comes_later(int32_t n) const;
  void fail(int32_t n, std::exception_ptr error) noexcept;
  void fail_located(const PlanNode& p, int32_t n) noexcept;
  void note_failure(const PlanNode& p, int32_t n, std::exception_ptr error) noexcept;

  RunQueue& queue_;
  const Plan& plan_;
  Frame& frame_;
  const Caller caller_;
  const int depth_;
  std::atomic<int64_t> error_place_{kNoError};  // of the first error, in this or a body it calls
  // Guarded by the queue's mutex.
  Activation* next_ = nullptr;  // in the queue
  size_t ready_count_ = 0;      // of frame_.ready, a heap: the lowest position on top
  int64_t live_ = 0;            // units in the queue or running, and asynchronous nodes on the way
  bool over_ = false;           // the end is in the queue
  bool parts_queued_ = false;
  size_t args_left_ = 0;              // of an iteration: arguments and states still to come
  std::vector<uint32_t> parts_left_;  // by result: what it waits for
  std::vector<int32_t> parts_;        // results that are there and that nobody was told of
  bool drained_ = false;              // the devices are asked, or past all
  int64_t executed_ = 0;
  std::vector<bool> done_, wanted_;  // by plan node, of a run whose arguments arrive one by one
  std::exception_ptr error_;
  int32_t error_node_ = 0;
};

}  // namespace treenail
