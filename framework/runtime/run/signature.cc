// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/signature.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/runtime/run/functions.h"
#include "framework/runtime/run/session_impl.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

constexpr size_t kKeptPlans = 8;
// After this many shapes in a row that no kept plan fits, one plan for all shapes serves what is
// not kept.
constexpr int kMissesBeforeGeneric = 16;
// One that comes back among the last shapes missed, so often, gets a plan of its own after all.
constexpr size_t kRememberedMisses = 8;
constexpr int kReturnsBeforePlan = 3;
// How often a run that waits for another's plan looks whether its time is over.
constexpr std::chrono::milliseconds kLockPoll{50}, kNoWait{0};

void append_key(std::vector<int64_t>& key, const Shape& shape) {
  key.push_back(shape.rank());
  key.insert(key.end(), shape.dims().begin(), shape.dims().end());
}

}  // namespace

void check_feed(const Output& value, const Tensor& tensor) {
  const DType wanted = value.node->op().output_type(value.index);
  if (tensor.dtype() != wanted) {
    throw invalid_argument("Cannot feed ", tensor, " for tensor \"", value, "\", which has dtype ",
                           wanted);
  }
  const PartialShape& shape = value.node->info(value.index).shape;
  if (!shape.compatible(tensor.shape())) {
    throw invalid_argument("Cannot feed value of shape ", tensor.shape(), " for tensor \"", value,
                           "\", which has shape ", shape);
  }
}

void throw_session_closed() { throw failed_precondition("the session is closed"); }

// A session closed meanwhile finds the signature locked: then its plans go here.
struct Session::Signature::ForgetInClosed {
  const std::atomic<bool>& closed;
  Signature& signature;
  ~ForgetInClosed() {
    if (closed.load()) signature.forget_unless_planning();
  }
};

std::shared_ptr<const Plan> Session::Signature::plan_for(const Planning& planning,
                                                         std::span<const Tensor> given,
                                                         RunLimits& limits, bool& specialized) {
  if (planning.session.closed.load()) throw_session_closed();
  const ForgetInClosed forget{planning.session.closed, *this};
  const std::unique_lock<ForkMutex> lock = up_to_date(planning, limits);
  // The key stands in memory that steady-state runs reuse.
  thread_local ShapeKey key;
  write_key(given, key);
  specialized = true;
  if (std::shared_ptr<const Plan> plan = kept_plan(key)) return plan;
  limits.begin_planning();
  return compile(planning, given, key, specialized);
}

std::shared_ptr<const Plan> Session::Signature::plan_in_parts(const Planning& planning,
                                                              RunLimits& limits) {
  if (planning.session.closed.load()) throw_session_closed();
  const ForgetInClosed forget{planning.session.closed, *this};
  const std::unique_lock<ForkMutex> lock = up_to_date(planning, limits);
  if (in_parts_) return in_parts_;
  limits.begin_planning();
  const std::shared_lock graph_lock(planning.graph.mutex());
  in_parts_ = plan_for_any_shape(planning, Args::kOneByOne);
  return in_parts_;
}

std::unique_lock<ForkMutex> Session::Signature::up_to_date(const Planning& planning,
                                                           RunLimits& limits) {
  std::unique_lock<ForkMutex> lock = locked(kNoWait);
  if (!lock) {  // another run makes its plan, which may take longer than this one has time
    limits.begin_planning();
    for (; !lock; lock = locked(kLockPoll)) poll_interrupt();
  }
  if (!topology_ || topology_->epoch != planning.graph.epoch()) {
    limits.begin_planning();
    renew_topology(planning);
  }
  return lock;
}

std::shared_ptr<const Plan> Session::Signature::plan_for_any_shape(const Planning& planning,
                                                                   Args args) {
  std::vector<PartialShape> shapes;
  for (const Output& feed : feeds) shapes.push_back(feed.node->info(feed.index).shape);
  return make_plan(topology_, shapes, *planning.session.resources, args);
}

void Session::Signature::write_key(std::span<const Tensor> given, ShapeKey& key) const {
  key.clear();
  for (const Tensor& feed : given) append_key(key, feed.shape());
  for (const IntrusivePtr<Variable>& variable : topology_->shape_variables) {
    if (variable->initialized()) {
      append_key(key, variable->read().shape());
    } else {
      key.push_back(-1);
    }
  }
}

std::shared_ptr<const Plan> Session::Signature::kept_plan(const ShapeKey& key) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Specialization& kept) { return kept.key == key; });
  if (found == kept_.end()) return nullptr;
  misses_ = 0;
  if (found != kept_.begin()) std::rotate(kept_.begin(), found, found + 1);
  return kept_[0].plan;
}

std::shared_ptr<const Plan> Session::Signature::compile(const Planning& planning,
                                                        std::span<const Tensor> given,
                                                        const ShapeKey& key, bool& specialized) {
  const std::shared_lock graph_lock(planning.graph.mutex());
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < given.size(); ++i) {
    check_feed(feeds[i], given[i]);
    shapes.push_back(given[i].shape());
  }
  if (!deserves_plan(key)) {
    specialized = false;
    if (!generic_) generic_ = plan_for_any_shape(planning, args);
    return generic_;
  }
  std::shared_ptr<const Plan> plan =
      make_plan(topology_, shapes, *planning.session.resources, args);
  // Who waits is waited for with nothing held.
  cost_ns = plan->can_wait ? std::numeric_limits<double>::infinity() : plan->cost_ns;
  if (kept_.size() == kKeptPlans) kept_.pop_back();
  kept_.insert(kept_.begin(), {key, plan});
  return plan;
}

void Session::Signature::renew_topology(const Planning& planning) {
  const std::shared_lock graph_lock(planning.graph.mutex());
  forget_plans();
  Impl& session = planning.session;
  const SessionOptions& options = session.options;
  TopologyOptions made{options.fold_constants, options.merge_common_subexpressions,
                       options.allow_soft_placement, options.fuse_elementwise, session.devices};
  made.task = options.task;
  if (planning.body == nullptr) made.by_cost = session.by_cost.get();
  if (planning.body != nullptr) {
    made.functions = planning.body->functions;
    made.facts = &planning.body->facts;
    made.call_path = planning.body->path;
    made.handles = planning.body->handles;
  } else if (!planning.graph.functions().empty()) {
    const auto functions = std::make_shared<Functions>(session, planning.graph.functions());
    made.functions = functions;
    made.facts = &functions->facts();
  }
  topology_ = make_topology(planning.graph, feeds, fetches, targets, *session.resources, made);
  if (options.log_placement) session.placements.write(*topology_, options.task);
}

bool Session::Signature::deserves_plan(const ShapeKey& key) {
  if (++misses_ <= kMissesBeforeGeneric) return true;
  auto it =
      std::find_if(missed_.begin(), missed_.end(), [&](const Miss& m) { return m.key == key; });
  if (it == missed_.end()) {
    if (missed_.size() == kRememberedMisses) missed_.pop_back();
    it = missed_.insert(missed_.end(), {key, 0});
  }
  std::rotate(missed_.begin(), it, it + 1);
  if (++missed_[0].times < kReturnsBeforePlan) return false;
  missed_.erase(missed_.begin());
  return true;
}

void Session::Signature::forget_unless_planning() {
  if (const auto lock = locked(kNoWait)) forget_plans();
}

void Session::Signature::forget_plans() {
  topology_.reset();
  kept_.clear();
  generic_.reset();
  in_parts_.reset();
  misses_ = 0;
  missed_.clear();
}

std::unique_lock<ForkMutex> Session::Signature::locked(std::chrono::milliseconds patience) {
  std::unique_lock<ForkMutex> lock(mutex_, std::try_to_lock);
  // By the system's clock, for sanitizers know no other wait; the period is no promise.
  if (!lock && patience > kNoWait &&
      !lock.try_lock_until(std::chrono::system_clock::now() + patience))
    return lock;
  if (lock && mutex_.abandoned()) {
    begin_anew(topology_);
    begin_anew(kept_);
    begin_anew(generic_);
    begin_anew(in_parts_);
    begin_anew(missed_);
    misses_ = 0;
  }
  return lock;
}

}  // namespace treenail
