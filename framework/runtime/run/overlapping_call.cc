// SPDX-License-Identifier: Apache-2.0
// Calls of a loop's body that overlap: arguments come one by one, results are taken as they are
// there.
#include <algorithm>
#include <utility>

#include "framework/base/interrupt.h"
#include "framework/base/thread_pool.h"
#include "framework/runtime/plan/schedule.h"
#include "framework/runtime/run/function_call.h"

namespace treenail {
namespace {

// What takes less is not worth another frame.
constexpr double kLongNs = 20'000;
// Of the calls of one loop under way. What waits takes no thread; what computes is as well off
// with a few for each.
constexpr int64_t kMostCalls = 128, kCallsPerThread = 2;
// Of a loop whose length nobody knows: enough for helpers to be woken where they are needed.
constexpr double kUsualIterations = 16;

bool takes_long(const PlanNode& p) {
  return p.asynchronous || (p.kernel && p.kernel->cost_ns >= kLongNs);
}

}  // namespace

Session::Functions::Call::Call(const Call& other)
    : body_(other.body_),
      caller_(other.caller_),
      node_(other.node_),
      scope_(other.scope_),
      shapes_(other.shapes_),
      states_(other.states_),
      plan_(other.plan_),
      fetches_(other.fetches_),
      queue_(other.queue_) {}

std::unique_ptr<FunctionCall> Session::Functions::Call::another() const {
  return std::unique_ptr<FunctionCall>(new Call(*this));
}

int64_t Session::Functions::Call::overlaps(std::span<const Tensor> arguments,
                                           const std::vector<bool>& checked,
                                           const std::vector<bool>& decide, int64_t most) {
  most = std::min(most, kMostCalls);
  if (body_.waits()) {
    if (!is_started()) return 0;
  } else {
    const int threads = ThreadPool::instance().num_threads();
    if (threads < 2) return 0;
    choose_plan(arguments);  // as each call would
    if (!may_be_faster_overlapping(*plan_, threads)) return 0;
    most = std::min(most, kCallsPerThread * threads);
  }
  choose_plan(arguments, Args::kIteration);
  fetches_ = fetch_numbers();
  if (keeps_shapes(arguments, checked) && pays(decide, most)) return most;
  plan_.reset();
  return 0;
}

std::vector<int32_t> Session::Functions::Call::fetch_numbers() const {
  std::vector<int32_t> numbers;
  int32_t next = 0;
  for (const bool wanted : body_.wanted()) numbers.push_back(wanted ? next++ : -1);
  return numbers;
}

bool Session::Functions::Call::hands_on(int argument) const {
  const auto i = static_cast<size_t>(argument);
  if (fetches_[i] < 0) return false;
  const int32_t slot = plan_->fetch_slots[static_cast<size_t>(fetches_[i])];
  return slot == plan_->arg_slots[i] ||
         plan_->slots[static_cast<size_t>(slot)].dtype == DType::kResource;
}

// The next call can run by this one's plan.
bool Session::Functions::Call::keeps_shapes(std::span<const Tensor> arguments,
                                            const std::vector<bool>& checked) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (fetches_[i] < 0) continue;
    const int32_t number = plan_->fetch_slots[static_cast<size_t>(fetches_[i])];
    const Slot& slot = plan_->slots[static_cast<size_t>(number)];
    if (slot.dtype == DType::kResource) {
      const auto same = [&](const auto& constant) {
        return constant.first == number && Body::state_of(constant.second) == states_[i];
      };
      if (std::ranges::none_of(plan_->constants, same)) return false;
    } else if (slot.kind == Slot::Kind::kArg) {
      if (number != plan_->arg_slots[i]) return false;
    } else if (slot.shape.fully_known() ? slot.shape.shape() != shapes_[i] : !checked[i]) {
      return false;
    }
  }
  return true;
}

bool Session::Functions::Call::pays(const std::vector<bool>& decide, int64_t most) const {
  if (body_.waits()) return something_long_may_overlap(decide);
  return faster_overlapping(*plan_, {fetches_, decide}, ThreadPool::instance().num_threads(),
                            static_cast<int>(most));
}

// The next call's beginning does not wait for it.
bool Session::Functions::Call::something_long_may_overlap(const std::vector<bool>& decide) const {
  std::vector<bool> needed(plan_->nodes.size());
  for (size_t i = 0; i < decide.size(); ++i) {
    if (!decide[i] || fetches_[i] < 0) continue;
    for (const int32_t wait : plan_->fetch_waits[static_cast<size_t>(fetches_[i])])
      if (wait >= 0) needed[static_cast<size_t>(wait)] = true;
  }
  bool found = false;
  for (size_t n = plan_->nodes.size(); n-- > 0;) {
    const PlanNode& p = plan_->nodes[n];
    const auto is_needed = [&](int32_t next) { return needed[static_cast<size_t>(next)]; };
    needed[n] = needed[n] || std::ranges::any_of(p.successors, is_needed);
    found |= !needed[n] && takes_long(p);
  }
  return found;
}

void Session::Functions::Call::open(PartsEnd& end) {
  Activation* const caller = queue_ == nullptr ? caller_->activation : nullptr;
  if (caller != nullptr) check_depth(*caller);
  if (!lease_) lease_.emplace(body_.session(), *plan_, scope_);
  begin_trace();
  parts_end_ = &end;
  end_ = &end;
  activation_.emplace(caller != nullptr ? caller->queue() : *queue_, *plan_, **lease_,
                      Activation::Caller{caller, node_, iteration, this, this});
  activation_->begin();
}

void Session::Functions::Call::give(int argument, Tensor value) {
  const auto i = static_cast<size_t>(argument);
  if (i < plan_->arg_slots.size() && plan_->arg_slots[i] >= 0)
    (**lease_).values[static_cast<size_t>(plan_->arg_slots[i])] = std::move(value);
  value = Tensor();
  activation_->give(i);
}

Tensor Session::Functions::Call::take(int result) {
  const auto i = static_cast<size_t>(result);
  if (i >= fetches_.size()) return {};
  const int32_t slot = plan_->fetch_slots[static_cast<size_t>(fetches_[i])];
  Tensor& value = (**lease_).values[static_cast<size_t>(slot)];
  const Slot::Kind kind = plan_->slots[static_cast<size_t>(slot)].kind;
  const bool once = std::ranges::count(plan_->fetch_slots, slot) == 1;
  return once && kind == Slot::Kind::kRun ? std::move(value) : value;
}

void Session::Functions::Call::give_up() { activation_->give_up(); }

void Session::Functions::Call::cancel_waits() {
  scope_.waits.cancel(Code::kCancelled, "another operation of the run has failed");
}

void Session::Functions::Call::work(FunctionRef<void()> begin,
                                    FunctionRef<void(std::exception_ptr)> interrupted) {
  RunQueue queue(scope_);
  queue_ = &queue;
  begin();
  queue.work(ThreadPool::instance().num_threads() - 1, kUsualIterations * plan_->cost_ns, [&] {
    try {
      poll_interrupt();
    } catch (...) {
      interrupted(std::current_exception());
    }
  });
}

void Session::Functions::Call::arrived(std::span<const int32_t> fetches) noexcept {
  std::vector<int32_t> results;
  const auto values = static_cast<int32_t>(plan_->fetch_slots.size());
  for (const int32_t fetch : fetches) {
    if (fetch >= values) {
      results.push_back(static_cast<int32_t>(fetches_.size()) + fetch - values);
    } else {
      const auto at = std::ranges::find(fetches_, fetch);
      results.push_back(static_cast<int32_t>(at - fetches_.begin()));
    }
  }
  parts_end_->arrived(results);
}

}  // namespace treenail
