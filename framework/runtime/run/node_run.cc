// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/node_run.h"

#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"
#include "framework/device/device.h"
#include "framework/op/flops.h"
#include "framework/runtime/run/activation.h"
#include "framework/runtime/run/call_path.h"
#include "framework/runtime/run/fault.h"
#include "framework/runtime/run/immediate.h"
#include "framework/tensor/charged.h"

namespace treenail {
namespace {

Tensor& value(Frame& frame, int32_t slot) { return frame.values[static_cast<size_t>(slot)]; }

int32_t position_of(const Plan& plan, const PlanNode& p) {
  return static_cast<int32_t>(&p - plan.nodes.data());
}

// What a trace tells of a node whose shapes only the run knew.
void note_dynamic(const Plan& plan, const PlanNode& p, const Frame& frame,
                  std::span<const Shape> given, std::span<const Tensor> outputs) {
  NodeTrace::Entry& entry = frame.trace->entries[static_cast<size_t>(position_of(plan, p))];
  std::vector<Shape> made;
  for (const Tensor& output : outputs) {
    made.push_back(output.shape());
    if (is_plain(output.dtype())) entry.bytes_allocated += static_cast<int64_t>(output.bytes());
  }
  entry.flops = count_flops(p.node->op(), given, made);
}

// `counter`: the name of a random operation's counter, which the services refer to.
NodeServices services_of(const Plan& plan, const PlanNode& p, Frame& frame, std::string& counter) {
  const Topology& topology = *plan.topology;
  if (p.node->op().def().random) counter = topology.counter_name(*p.node);
  return {plan.resources,
          p.node->original_name(),
          counter,
          topology.devices[static_cast<size_t>(p.device)],
          topology.functions.get(),
          p.node,
          topology.awaited.contains(p.node),
          p.calls || p.asynchronous ? &frame : nullptr,
          position_of(plan, p)};
}

std::vector<Tensor> inputs_of(const PlanNode& p, Frame& frame) {
  std::vector<Tensor> inputs;
  inputs.reserve(p.inputs.size());
  for (const int32_t slot : p.inputs) inputs.push_back(value(frame, slot));
  return inputs;
}

// Those that nothing else will read are given away.
std::vector<Tensor> inputs_for(const PlanNode& p, Frame& frame) {
  std::vector<Tensor> inputs = inputs_of(p, frame);
  for (const int32_t slot : p.counted) {
    if (frame.uses[static_cast<size_t>(slot)].load(std::memory_order_acquire) == 1)
      value(frame, slot) = Tensor();
  }
  return inputs;
}

void set_outputs(const PlanNode& p, Frame& frame, std::vector<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    value(frame, p.first_output + static_cast<int32_t>(i)) = std::move(outputs[i]);
  }
}

void run_dynamic(const Plan& plan, const PlanNode& p, Frame& frame) {
  std::vector<Tensor> inputs = inputs_for(p, frame);
  std::vector<Shape> given;
  if (frame.trace != nullptr)
    for (const Tensor& input : inputs) given.push_back(input.shape());
  std::string counter;
  std::vector<Tensor> outputs = run_taking(
      p.node->op(), std::move(inputs), services_of(plan, p, frame, counter), &frame.scope->token);
  if (frame.trace != nullptr) note_dynamic(plan, p, frame, given, outputs);
  set_outputs(p, frame, std::move(outputs));
}

class DynamicEnd final : public ImmediateEnd {
 public:
  DynamicEnd(const PlanNode& p, Frame& frame, Done done) : p_(p), frame_(frame), done_(done) {}
  void ended(std::vector<Tensor> outputs, std::exception_ptr error) noexcept override {
    if (error != nullptr) return done_.fail(std::move(error));
    set_outputs(p_, frame_, std::move(outputs));
    done_();
  }

 private:
  const PlanNode& p_;
  Frame& frame_;
  const Done done_;
};

void start_dynamic(const Plan& plan, const PlanNode& p, Frame& frame, Done done) {
  std::string counter;
  start_taking(p.node->op(), inputs_for(p, frame), services_of(plan, p, frame, counter),
               frame.scope->waits, std::make_unique<DynamicEnd>(p, frame, done));
}

// The kernel's shapes were prepared for these, in this memory; a variable that changed its shape
// under the plan shows here.
void check_given(const Plan& plan, const PlanNode& p, Frame& frame) {
  for (const int32_t slot : p.kernel_gives) {
    const Slot& planned = plan.slots[static_cast<size_t>(slot)];
    const Tensor& given = value(frame, slot);
    const PlanMemory& memory = plan.memories[static_cast<size_t>(planned.memory)];
    if (given.device() != memory.owner()) {
      throw internal_error("gave ", given, " in the memory of another device than ",
                           to_text(memory.device->name()));
    }
    if (given.dtype() == planned.dtype && planned.shape.compatible(given.shape())) continue;
    throw failed_precondition("gave ", given, " where the running plan was made for ",
                              planned.dtype, planned.shape,
                              ": a variable changed its shape during the run");
  }
}

// Memory for the outputs, and where everything is.
[[gnu::always_inline]] inline RunContext provide(const Plan& plan, const PlanNode& p,
                                                 Frame& frame) {
  for (const int32_t slot : p.fresh) {
    const Slot& planned = plan.slots[static_cast<size_t>(slot)];
    value(frame, slot) = planned.allocate != nullptr
                             ? planned.allocate(planned.dtype, planned.shape.shape())
                             : Tensor(planned.dtype, planned.shape.shape(),
                                      plan.memories[static_cast<size_t>(planned.memory)].owner());
  }
  RunContext context;
  context.values_ = frame.values.data();
  context.input_slots_ = p.inputs.data();
  context.output_slot_ = p.first_output;
  context.uses_ = frame.uses.get();
  context.scratch_ = frame.arenas[static_cast<size_t>(p.memory)] + p.scratch_offset;
  if (p.calls) {
    context.frame_ = &frame;
    context.node_ = position_of(plan, p);
  }
  return context;
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
  RunContext context = provide(plan, p, frame);
  context.token_ = &frame.scope->token;
  p.kernel->run(context);
  if (!p.kernel_gives.empty()) check_given(plan, p, frame);
}

inline void release(const PlanNode& p, Frame& frame) {
  for (const int32_t slot : p.counted) {
    std::atomic<int32_t>& uses = frame.uses[static_cast<size_t>(slot)];
    // Whoever sees 1 has the last use; to look costs a tenth of counting down.
    if (uses.load(std::memory_order_acquire) == 1 ||
        uses.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      value(frame, slot) = Tensor();
    }
  }
}

NodeTrace::Entry& trace_of(const Plan& plan, const PlanNode& p, const Frame& frame) {
  return frame.trace->entries[static_cast<size_t>(position_of(plan, p))];
}

void note_end(const Plan& plan, const PlanNode& p, NodeTrace::Entry& entry) {
  entry.end_ns = monotonic_ns();
  entry.thread = ::gettid();
  const Device& device = *plan.memories[static_cast<size_t>(p.memory)].device;
  entry.bytes_in_use = device.stats().bytes_in_use;
}

// Notes when a node ran, where the run is asked for it.
class NodeTimer {
 public:
  NodeTimer(const Plan& plan, const PlanNode& p, const Frame& frame) : plan_(plan), node_(p) {
    if (frame.trace == nullptr) [[likely]]
      return;
    entry_ = &trace_of(plan, p, frame);
    entry_->start_ns = monotonic_ns();
  }
  ~NodeTimer() {
    if (entry_ == nullptr) [[likely]]
      return;
    note_end(plan_, node_, *entry_);
  }
  NodeTimer(const NodeTimer&) = delete;
  NodeTimer& operator=(const NodeTimer&) = delete;

 private:
  const Plan& plan_;
  const PlanNode& node_;
  NodeTrace::Entry* entry_ = nullptr;
};

// As provide(), part of the plain loop, in which a call per node shows.
[[gnu::always_inline]] inline void run_one(const Plan& plan, const PlanNode& p, Frame& frame) {
  const NodeTimer timer(plan, p, frame);
  try {
    compute(plan, p, frame);
  } catch (...) {
    rethrow_located(plan, p, frame);
  }
  release(p, frame);
}

// Interrupts are looked at after about this much estimated work, or this many nodes.
constexpr double kPollNs = 1'000'000;
constexpr int kPollNodes = 256;

}  // namespace

void rethrow_located(const Plan& plan, const PlanNode& p, const Frame& frame) {
  try {
    throw;
  } catch (const Error& error) {
    frame.scope->token.check();
    throw located_in_run(node_at_fault(plan, p, frame, error), frame, error);
  } catch (const std::bad_alloc&) {
    throw located_in_run(*p.node, frame, resource_exhausted("out of memory"));
  }
}

void run_node(const Plan& plan, const PlanNode& p, Frame& frame) { run_one(plan, p, frame); }

void enqueue_node(const Plan& plan, const PlanNode& p, Frame& frame, Failure failure) {
  const NodeTimer timer(plan, p, frame);
  try {
    RunContext context = provide(plan, p, frame);
    context.token_ = &frame.scope->token;
    static_cast<const QueuedKernel&>(*p.kernel).enqueue(context, failure);
  } catch (...) {
    rethrow_located(plan, p, frame);
  }
  release(p, frame);
}

void start_node(const Plan& plan, const PlanNode& p, Frame& frame, Done done) {
  if (frame.trace != nullptr) trace_of(plan, p, frame).start_ns = monotonic_ns();
  if (p.kind == PlanNode::Kind::kDynamic) return start_dynamic(plan, p, frame, done);
  RunContext context = provide(plan, p, frame);
  context.token_ = &frame.scope->waits;
  context.frame_ = &frame;
  async_kernel(*p.kernel, p.node->op()).start(context, done);
}

namespace {

// What another thread has brought, and allocated for nobody: a value that another task sent.
void charge_outputs(const PlanNode& p, Frame& frame) {
  MemoryAccount* const account = frame.activation->queue().account();
  if (account == nullptr) return;
  for (int i = 0; i < p.node->num_outputs(); ++i) {
    Tensor& output = value(frame, p.first_output + i);
    output = charged(std::move(output), *account);
  }
}

}  // namespace

void finish_node(const Plan& plan, const PlanNode& p, Frame& frame) {
  charge_outputs(p, frame);
  if (!p.kernel_gives.empty()) check_given(plan, p, frame);
  if (frame.trace != nullptr) note_end(plan, p, trace_of(plan, p, frame));
  release(p, frame);
}

int64_t run_nodes_in_order(const Plan& plan, Frame& frame) {
  double since_poll_ns = 0;
  int since_poll = 0;
  const CancellationToken& token = frame.scope->token;
  token.check();
  for (const PlanNode& p : plan.nodes) {
    since_poll_ns += p.kernel ? p.kernel->cost_ns : kPollNs;
    if (since_poll_ns >= kPollNs || ++since_poll >= kPollNodes) {
      since_poll_ns = 0;
      since_poll = 0;
      poll_interrupt();
      token.check();
    }
    run_one(plan, p, frame);
  }
  token.check();
  return static_cast<int64_t>(plan.nodes.size());
}

}  // namespace treenail
