// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/executor.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/fp_environment.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"
#include "framework/base/thread_pool.h"
#include "framework/base/work_region.h"
#include "framework/op/flops.h"
#include "framework/runtime/run/immediate.h"
#include "framework/tensor/allocator.h"

namespace treenail {
namespace {

// Interrupts are looked at after about this much estimated work, or this many nodes.
constexpr double kPollNs = 1'000'000;
constexpr int kPollNodes = 256;
// Side by side: a node below this runs on the thread that readied it.
constexpr double kInlineNs = 5'000;
constexpr int kInterruptMs = 50;

Tensor& value(Frame& frame, int32_t slot) { return frame.values[static_cast<size_t>(slot)]; }

// What a trace tells of a node whose shapes only the run knew.
void note_dynamic(const Plan& plan, const PlanNode& p, const Frame& frame,
                  std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  NodeTrace::Entry& entry = frame.trace->entries[static_cast<size_t>(&p - plan.nodes.data())];
  std::vector<Shape> given, made;
  for (const Tensor& input : inputs) given.push_back(input.shape());
  for (const Tensor& output : outputs) {
    made.push_back(output.shape());
    if (is_plain(output.dtype())) entry.bytes_allocated += static_cast<int64_t>(output.bytes());
  }
  entry.flops = count_flops(p.node->op(), given, made);
}

void run_dynamic(const Plan& plan, const PlanNode& p, Frame& frame) {
  std::vector<Tensor> inputs;
  inputs.reserve(p.inputs.size());
  for (const int32_t slot : p.inputs) inputs.push_back(value(frame, slot));
  const NodeServices services{plan.resources, p.node->original_name()};
  std::vector<Tensor> outputs = run_immediately(p.node->op(), inputs, services, &frame.token);
  if (frame.trace != nullptr) note_dynamic(plan, p, frame, inputs, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    value(frame, p.first_output + static_cast<int32_t>(i)) = std::move(outputs[i]);
  }
}

// The kernel's shapes were prepared for these; a variable that changed its shape under the plan
// shows here.
void check_given(const Plan& plan, const PlanNode& p, Frame& frame) {
  for (const int32_t slot : p.kernel_gives) {
    const Slot& planned = plan.slots[static_cast<size_t>(slot)];
    const Tensor& given = value(frame, slot);
    if (given.dtype() == planned.dtype && planned.shape.compatible(given.shape())) continue;
    throw failed_precondition("gave ", given, " where the running plan was made for ",
                              planned.dtype, planned.shape,
                              ": a variable changed its shape during the run");
  }
}

void compute(const Plan& plan, const PlanNode& p, Frame& frame) {
  switch (p.kind) {
    case PlanNode::Kind::kOrder:
      return;
    case PlanNode::Kind::kView: {
      const Tensor& source =
          value(frame, p.inputs[static_cast<size_t>(p.node->op().def().view_of)]);
      const Slot& view = plan.slots[static_cast<size_t>(p.first_output)];
      value(frame, p.first_output) = view_as(source, view.dtype, view.shape.shape());
      return;
    }
    case PlanNode::Kind::kDynamic:
      return run_dynamic(plan, p, frame);
    case PlanNode::Kind::kKernel:
      break;
  }
  for (const int32_t slot : p.fresh) {
    const Slot& planned = plan.slots[static_cast<size_t>(slot)];
    value(frame, slot) = Tensor(planned.dtype, planned.shape.shape());
  }
  if (p.forwarded >= 0) value(frame, p.first_output) = value(frame, p.forwarded);
  RunContext context;
  context.values_ = frame.values.data();
  context.input_slots_ = p.inputs.data();
  context.output_slot_ = p.first_output;
  context.scratch_ = frame.arena + p.scratch_offset;
  context.token_ = &frame.token;
  p.kernel->run(context);
  if (!p.kernel_gives.empty()) check_given(plan, p, frame);
}

void release(const PlanNode& p, Frame& frame) {
  for (const int32_t slot : p.counted) {
    if (frame.uses[static_cast<size_t>(slot)].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      value(frame, slot) = Tensor();
    }
  }
}

// Notes when a node ran, where the run is asked for it.
class NodeTimer {
 public:
  NodeTimer(const Plan& plan, const PlanNode& p, const Frame& frame) {
    if (frame.trace == nullptr) [[likely]]
      return;
    entry_ = &frame.trace->entries[static_cast<size_t>(&p - plan.nodes.data())];
    entry_->start_ns = monotonic_ns();
  }
  ~NodeTimer() {
    if (entry_ == nullptr) [[likely]]
      return;
    entry_->end_ns = monotonic_ns();
    entry_->thread = ::gettid();
    entry_->bytes_in_use = Allocator::host().stats().bytes_in_use;
  }
  NodeTimer(const NodeTimer&) = delete;
  NodeTimer& operator=(const NodeTimer&) = delete;

 private:
  NodeTrace::Entry* entry_ = nullptr;
};

// Runs one node; whatever it throws becomes an Error that names it. What poll_interrupt() throws is
// the caller's own and passes unchanged; so does a cancellation, which no node caused.
void run_node(const Plan& plan, const PlanNode& p, Frame& frame) {
  const NodeTimer timer(plan, p, frame);
  try {
    compute(plan, p, frame);
  } catch (const Error& error) {
    if (frame.token.cancelled()) frame.token.check();
    throw located_error(*p.node, error);
  } catch (const std::bad_alloc&) {
    throw located_error(*p.node, resource_exhausted("out of memory"));
  }
  release(p, frame);
}

int64_t run_in_order(const Plan& plan, Frame& frame) {
  double since_poll_ns = 0;
  int since_poll = 0;
  frame.token.check();
  for (const PlanNode& p : plan.nodes) {
    since_poll_ns += p.kernel ? p.kernel->cost_ns : kPollNs;
    if (since_poll_ns >= kPollNs || ++since_poll >= kPollNodes) {
      since_poll_ns = 0;
      since_poll = 0;
      poll_interrupt();
      frame.token.check();
    }
    run_node(plan, p, frame);
  }
  frame.token.check();
  return static_cast<int64_t>(plan.nodes.size());
}

// Side by side: the caller and helpers of the pool take ready nodes, lowest position first. After
// an error only nodes before it in canonical order still begin, so that the error reported is the
// first one whatever the timing. Each node in the queue is a unit of the region, but which unit
// runs which node is seen when it begins. A node waits in one place at a time, once per run, so the
// frame's two words per node hold the queue and the threads' own stacks.
class SideBySide {
  static constexpr int32_t kNone = -1;

 public:
  SideBySide(const Plan& plan, Frame& frame)
      : plan_(plan),
        frame_(frame),
        region_(unit_, ThreadPool::instance().num_threads() - 1, plan.cost_ns) {
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      frame.waiting[n].store(plan.nodes[n].waits_for, std::memory_order_relaxed);
      if (plan.nodes[n].waits_for == 0) push_ready(static_cast<int32_t>(n));
    }
  }

  int64_t run() {
    const auto ready = static_cast<uint32_t>(ready_count_);
    units_left_ = ready;
    if (ready == 0) {
      region_.close();
    } else {
      region_.add(ready, ready - 1);  // this thread takes one
    }
    if (!region_.run(kInterruptMs, [this] { look_after_interrupts(); })) {
      throw failed_precondition(
          "the process was forked while this run was in flight; the child cannot finish it");
    }
    if (error_) std::rethrow_exception(error_);
    frame_.token.check();
    return executed_;
  }

 private:
  void run_unit() noexcept {
    int32_t n = kNone;
    {
      const std::lock_guard lock(mutex_);
      n = pop_ready();
    }
    const int64_t executed = run_chain(n);
    if (forked()) return;  // nothing that another thread may have held is touched in the child
    const std::lock_guard lock(mutex_);
    executed_ += executed;
    if (--units_left_ == 0) region_.close();
  }

  // The node, then what it readied: the cheap ones here at once, the others through the queue. How
  // many nodes ran.
  int64_t run_chain(int32_t first) {
    int64_t executed = 0;
    int32_t mine = first;  // top of a stack linked through frame_.below
    frame_.below[static_cast<size_t>(first)] = kNone;
    while (mine != kNone) {
      const int32_t n = mine;
      mine = frame_.below[static_cast<size_t>(n)];
      if (n > error_position_.load(std::memory_order_acquire)) continue;
      const PlanNode& p = plan_.nodes[static_cast<size_t>(n)];
      try {
        frame_.token.check();
        poll_interrupt();
        run_node(plan_, p, frame_);
      } catch (...) {
        if (forked()) return executed;
        fail(n);
        continue;
      }
      // A kernel may fork (a plugin's, or a signal handler on the way).
      if (forked()) return executed;
      ++executed;
      mine = ready_successors(p, mine);
    }
    return executed;
  }

  // `mine` with the cheap ones on top.
  int32_t ready_successors(const PlanNode& p, int32_t mine) {
    uint32_t handed_over = 0;
    for (const int32_t next : p.successors) {
      if (frame_.waiting[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1)
        continue;
      const PlanNode& q = plan_.nodes[static_cast<size_t>(next)];
      const bool cheap = q.kind == PlanNode::Kind::kOrder || q.kind == PlanNode::Kind::kView ||
                         (q.kernel && q.kernel->cost_ns < kInlineNs);
      if (cheap) {
        frame_.below[static_cast<size_t>(next)] = mine;
        mine = next;
      } else {
        const std::lock_guard lock(mutex_);
        push_ready(next);
        ++units_left_;
        ++handed_over;
      }
    }
    // This thread takes one itself, unless it goes on with cheap nodes first.
    if (handed_over > 0) region_.add(handed_over, handed_over - (mine == kNone ? 1 : 0));
    return mine;
  }

  bool forked() const { return fork_generation() != born_; }

  // The caller holds mutex_, or is the only thread yet.
  void push_ready(int32_t n) {
    frame_.ready[ready_count_++] = n;
    std::push_heap(&frame_.ready[0], &frame_.ready[ready_count_], std::greater<>());
  }
  int32_t pop_ready() {
    std::pop_heap(&frame_.ready[0], &frame_.ready[ready_count_], std::greater<>());
    return frame_.ready[--ready_count_];
  }

  void fail(int32_t n) {
    const std::lock_guard lock(mutex_);
    if (n < error_position_) {
      error_position_ = n;
      error_ = std::current_exception();
    }
  }

  // While the caller waits for others: what its own business throws goes before the error of any
  // node.
  void look_after_interrupts() noexcept {
    try {
      poll_interrupt();
    } catch (...) {
      fail(kNone);
    }
  }

  const Plan& plan_;
  Frame& frame_;
  const uint32_t born_ = fork_generation();
  std::mutex mutex_;         // held for a few instructions, never across a kernel
  size_t ready_count_ = 0;   // of frame_.ready, a heap: the lowest position on top
  uint32_t units_left_ = 0;  // in the queue or running
  int64_t executed_ = 0;
  std::atomic<int32_t> error_position_{std::numeric_limits<int32_t>::max()};
  std::exception_ptr error_;
  const std::function<void()> unit_ = [this] { run_unit(); };
  WorkRegion region_;  // last: its destructor waits for helpers
};

}  // namespace

int64_t execute_plan(const Plan& plan, Frame& frame) {
  const FpEnvironment ieee;
  return plan.side_by_side ? SideBySide(plan, frame).run() : run_in_order(plan, frame);
}

}  // namespace treenail
