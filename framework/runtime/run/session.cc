// SPDX-License-Identifier: Apache-2.0
// Finding the signature of a run, lending its plan a frame, and moving feeds and fetches. Runs in
// parts: partial_run.cc.
#include "framework/runtime/run/session.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"
#include "framework/runtime/kernel/installed_devices.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/deadline.h"
#include "framework/runtime/run/executor.h"
#include "framework/runtime/run/partial_run.h"
#include "framework/runtime/run/profile.h"
#include "framework/runtime/run/run_limits.h"
#include "framework/runtime/run/session_impl.h"
#include "framework/runtime/run/signature.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

// Of one plan: what calls within calls have taken goes back to the system.
constexpr size_t kMostIdleFrames = 256;

// The trace of a run that is asked for one.
class TraceLease {
 public:
  TraceLease(const Plan& plan, Frame& frame, bool wanted) : frame_(frame) {
    if (!wanted) return;
    trace_.emplace(plan);
    frame.trace = &trace_->own();
    frame.scope->trace = &*trace_;
  }
  ~TraceLease() {
    frame_.trace = nullptr;
    frame_.scope->trace = nullptr;
  }
  TraceLease(const TraceLease&) = delete;
  TraceLease& operator=(const TraceLease&) = delete;

 private:
  Frame& frame_;
  std::optional<RunTrace> trace_;
};

RunMetadata planned_metadata(const Plan& plan, bool specialized) {
  const PlanMemory& host = plan.memories[0];
  RunMetadata metadata{0, host.arena_bytes, plan.cost_ns, specialized, host.peak_bytes, {}, {}, 0,
                       0};
  for (const PlanMemory& memory : plan.memories) {
    if (!memory.used || memory.device->is_host()) continue;
    metadata.devices.push_back(
        {to_text(memory.device->name()), memory.arena_bytes, memory.peak_bytes});
  }
  return metadata;
}

// `keys`: one for each. Errors: InvalidArgument (a feed of a resource, a value fed twice).
void check_feeds(std::span<const Output> feeds, std::vector<int64_t> keys) {
  for (const Output& value : feeds) {
    if (value.node->op().output_type(value.index) == DType::kResource)
      throw invalid_argument("Cannot feed \"", value, "\": it is a resource handle");
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return;
  const Node* const node = feeds[0].node->graph().node(static_cast<int>(*twice >> 32));
  throw invalid_argument("the value \"", node->name(), ":", *twice & 0xffffffff,
                         "\" is fed more than once");
}

}  // namespace

Session::Session(std::shared_ptr<Graph> graph, SessionOptions options)
    : graph_(std::move(graph)), impl_(std::make_unique<Impl>()) {
  impl_->resources = options.resources ? options.resources : std::make_shared<ResourceManager>();
  open_installed_devices();
  impl_->devices = session_devices(options.device_count);
  for (Device* device : impl_->devices)
    impl_->arenas.push_back(std::make_unique<ArenaPool>(*device));
  impl_->remote = options.remote;
  if (options.placement != nullptr && impl_->devices.size() > 1) {
    impl_->by_cost = std::make_unique<CostPlacements>(
        *options.placement, placement_devices(impl_->devices), options.allow_soft_placement);
  }
  impl_->options = std::move(options);
  impl_->resources->attach();
}

Session::~Session() { close(); }

std::vector<std::string> Session::devices() const {
  if (impl_->remote) return impl_->remote->devices();
  std::vector<std::string> names;
  for (const Device* device : impl_->devices) names.push_back(to_text(device->name()));
  return names;
}

std::string Session::figures() const { return impl_->remote ? impl_->remote->figures() : ""; }

ResourceManager& Session::resources() const { return *impl_->resources; }

double Session::estimated_cost_ns(const Signature& signature) {
  return signature.cost_ns.load(std::memory_order_relaxed);
}

std::shared_ptr<Session::Signature> Session::signature(std::span<const Output> feeds,
                                                       std::span<const Output> fetches,
                                                       std::span<Node* const> targets) {
  // The key stands in memory that steady-state runs reuse.
  thread_local Impl::Key key;
  key.clear();
  const auto add = [&](const Output& value, std::string_view what) {
    if (value.node == nullptr || &value.node->graph() != graph_.get()) {
      throw invalid_argument("the ", what, " ", value, " is not a value of the session's graph");
    }
    if (value.index < 0 || value.index >= value.node->num_outputs()) {
      throw invalid_argument("the ", what, " ", value, " does not exist: its node has ",
                             value.node->num_outputs(), " outputs");
    }
    key.push_back((static_cast<int64_t>(value.node->id()) << 32) | value.index);
  };
  for (const Output& value : feeds) add(value, "feed");
  key.push_back(-1);
  for (const Output& value : fetches) add(value, "fetch");
  key.push_back(-1);
  for (const Node* target : targets) {
    if (target == nullptr || &target->graph() != graph_.get()) {
      throw invalid_argument("a target is not a node of the session's graph");
    }
    key.push_back(target->id());
  }
  const std::unique_lock lock = impl_->locked();
  const auto known = impl_->signatures.find(key);
  if (known != impl_->signatures.end()) {
    known->second->used = ++impl_->uses;
    return known->second;
  }
  check_feeds(feeds, {key.begin(), key.begin() + static_cast<std::ptrdiff_t>(feeds.size())});
  auto made = std::make_shared<Signature>(std::vector<Output>(feeds.begin(), feeds.end()),
                                          std::vector<Output>(fetches.begin(), fetches.end()),
                                          std::vector<Node*>(targets.begin(), targets.end()));
  made->used = ++impl_->uses;
  impl_->signatures.emplace(key, made);
  impl_->forget_oldest();
  return made;
}

std::unique_lock<ForkMutex> Session::Impl::locked() {
  std::unique_lock<ForkMutex> lock(mutex);
  if (mutex.abandoned()) {
    begin_anew(running);
    begin_anew(signatures);
  }
  if (generation != fork_generation()) {
    running.clear();
    begin_anew(partial_runs);
    generation = fork_generation();
  }
  return lock;
}

// Only its plans go; whoever still holds the signature may go on running it.
void Session::Impl::forget_oldest() {
  if (signatures.size() <= kMostSignatures) return;
  const auto oldest = std::min_element(
      signatures.begin(), signatures.end(),
      [](const auto& a, const auto& b) { return a.second->used < b.second->used; });
  signatures.erase(oldest);
}

void Session::Impl::begin(Frame& frame, Signature& signature) {
  const std::unique_lock lock = locked();
  if (closed.load()) throw_session_closed();
  signature.used = ++uses;
  running.push_back(&frame);
}

void Session::Impl::end(Frame& frame) {
  const std::unique_lock lock = locked();
  std::erase(running, &frame);
}

Session::FrameLease::FrameLease(Impl& session, Signature& signature, const Plan& plan)
    : session_(session), plan_(plan) {
  take_frame();
  if (!frame_->own_scope) frame_->own_scope = std::make_unique<RunScope>();
  frame_->scope = frame_->own_scope.get();
  frame_->scope->exchange = nullptr;
  try {
    take_arenas();
    session.begin(*frame_, signature);
  } catch (...) {
    give_back_arenas();
    throw;
  }
}

Session::FrameLease::FrameLease(Impl& session, const Plan& plan, RunScope& scope)
    : session_(session), plan_(plan) {
  take_frame();
  frame_->scope = &scope;
  try {
    take_arenas();
  } catch (...) {
    give_back_arenas();
    throw;
  }
}

void Session::FrameLease::take_frame() {
  {
    const std::lock_guard lock(plan_.mutex);
    if (plan_.mutex.abandoned()) begin_anew(plan_.idle_frames);
    if (!plan_.idle_frames.empty()) {
      frame_ = std::move(plan_.idle_frames.back());
      plan_.idle_frames.pop_back();
    }
  }
  if (!frame_) frame_ = std::make_unique<Frame>(plan_);
}

void Session::FrameLease::take_arenas() {
  for (size_t i = 0; i < plan_.memories.size(); ++i) {
    const PlanMemory& memory = plan_.memories[i];
    try {
      arenas_.push_back(
          session_.arenas[i]->take(static_cast<size_t>(memory.arena_bytes), frame_->arenas[i]));
    } catch (const Error& error) {
      throw arena_error(plan_, i, error);
    }
    frame_->use_arena(plan_, i, arenas_[i].data);
  }
}

void Session::FrameLease::give_back_arenas() {
  for (size_t i = 0; i < arenas_.size(); ++i) session_.arenas[i]->give_back(arenas_[i]);
}

Session::FrameLease::~FrameLease() {
  if (frame_->scope == frame_->own_scope.get()) session_.end(*frame_);
  give_back_arenas();
  if (frame_->scope->token.cancelled() || frame_->scope->waits.cancelled()) return;
  frame_->reset(plan_);
  frame_->scope = nullptr;
  frame_->trace = nullptr;
  const std::lock_guard lock(plan_.mutex);
  if (plan_.mutex.abandoned()) begin_anew(plan_.idle_frames);
  if (plan_.idle_frames.size() < kMostIdleFrames) plan_.idle_frames.push_back(std::move(frame_));
}

Tensor fetched(const Frame& frame, int32_t slot) {
  const Tensor& value = frame.values[static_cast<size_t>(slot)];
  const bool own = value.buffer()->kind() == Buffer::Kind::kOwned;
  return own ? value : value.deep_copy();
}

void check_bytes(const Plan& plan, const RunOptions& options) {
  const int64_t needed = plan.memories[0].peak_bytes;
  if (options.most_bytes <= 0 || needed <= options.most_bytes) return;
  throw error_of(Code::kResourceExhausted,
                 {"the run needs ", needed, " bytes at once, and may hold ", options.most_bytes});
}

std::vector<Tensor> Session::run(const std::shared_ptr<Signature>& signature,
                                 std::span<const Tensor> feeds, const RunOptions& options,
                                 RunMetadata* metadata) {
  if (feeds.size() != signature->feeds.size()) {
    throw invalid_argument("the run needs ", signature->feeds.size(), " feeds, got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Output& value = signature->feeds[i];
    if (feeds[i].dtype() != value.node->op().output_type(value.index)) check_feed(value, feeds[i]);
  }
  if (impl_->remote) return impl_->remote->run(*signature, feeds, options, metadata);
  RunLimits limits(options);
  bool specialized = false;
  std::shared_ptr<const Plan> plan;
  try {
    plan = signature->plan_for(impl_->planning(*graph_), feeds, limits, specialized);
  } catch (const Error&) {
    limits.end_planning();
    throw;
  }
  limits.end_planning();
  if (metadata != nullptr) *metadata = planned_metadata(*plan, specialized);
  check_bytes(*plan, options);
  FrameLease lease(*impl_, *signature, *plan);
  Frame& frame = *lease;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (plan->arg_slots[i] >= 0) frame.values[static_cast<size_t>(plan->arg_slots[i])] = feeds[i];
  }
  frame.scope->exchange = options.exchange;
  int64_t executed = 0;
  const TraceLease trace(*plan, frame, metadata != nullptr && options.trace);
  {
    const InterruptScope interrupts(options.poll);
    CancellationToken& token = frame.scope->token;
    const TokenLink link(options.token, token);
    try {
      if (options.timeout_ms > 0) {
        const DeadlineScope deadline(token, options.timeout_ms, limits.begun());
        executed = execute_plan(*plan, frame);
      } else {
        executed = execute_plan(*plan, frame);
      }
    } catch (const Error&) {
      if (options.token != nullptr) options.token->check();  // the caller's own reason comes first
      throw;
    }
  }
  std::vector<Tensor> results;
  results.reserve(plan->fetch_slots.size());
  for (const int32_t slot : plan->fetch_slots) results.push_back(fetched(frame, slot));
  if (metadata != nullptr) metadata->nodes_executed = executed;
  if (frame.trace != nullptr) {
    metadata->nodes = frame.scope->trace->node_stats(*plan);
    metadata->begun_ns = frame.trace->begin_ns;
  }
  return results;
}

std::vector<Tensor> Session::run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                                 const std::vector<std::string>& fetches,
                                 const std::vector<std::string>& targets,
                                 const RunOptions& options) {
  std::vector<Output> feed_values, fetch_values;
  std::vector<Tensor> tensors;
  std::vector<Node*> target_nodes;
  {
    const std::shared_lock lock(graph_->mutex());
    for (const auto& [name, tensor] : feeds) {
      feed_values.push_back(graph_->find_output(name));
      tensors.push_back(tensor);
    }
    for (const std::string& name : fetches) fetch_values.push_back(graph_->find_output(name));
    for (const std::string& name : targets) {
      Node* node = graph_->find(name);
      if (node == nullptr) throw not_found("the graph has no node \"", name, "\" to run");
      target_nodes.push_back(node);
    }
  }
  return run(signature(feed_values, fetch_values, target_nodes), tensors, options);
}

// What runs keeps the variables and the memory it uses until it has ended.
void Session::close() {
  std::vector<std::shared_ptr<Signature>> signatures;
  decltype(impl_->partial_runs) partial_runs;  // end when the lock is free
  {
    const std::unique_lock lock = impl_->locked();
    if (impl_->closed.exchange(true)) return;
    for (Frame* frame : impl_->running)
      frame->scope->token.cancel(Code::kCancelled, "the session was closed");
    for (auto& [key, signature] : impl_->signatures) signatures.push_back(std::move(signature));
    impl_->signatures.clear();
    partial_runs.swap(impl_->partial_runs);
  }
  partial_runs.clear();
  if (impl_->remote) impl_->remote->close();
  for (const std::shared_ptr<Signature>& signature : signatures)
    signature->forget_unless_planning();
  for (const auto& arenas : impl_->arenas) arenas->clear();
  impl_->resources->detach();
}

}  // namespace treenail
