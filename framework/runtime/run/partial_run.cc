// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/partial_run.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/runtime/run/run_limits.h"
#include "framework/runtime/run/session_impl.h"
#include "framework/runtime/state/stored_value.h"

namespace treenail {
namespace {

constexpr int32_t kNothing = -1;

}  // namespace

Session::PartialRun::PartialRun(Impl& session, const Graph& graph,
                                std::shared_ptr<Signature> signature,
                                std::shared_ptr<const Plan> plan,
                                std::shared_ptr<Exchange> exchange)
    : exchange_(std::move(exchange)),
      signature_(std::move(signature)),
      plan_(std::move(plan)),
      lease_(std::make_unique<FrameLease>(session, *signature_, *plan_)),
      frame_(**lease_),
      names_(graph, *signature_),
      execution_(*plan_, frame_) {
  frame_.scope->exchange = exchange_.get();
}

Session::PartialRun::~PartialRun() {
  if (over()) return;
  cancel();
  try {
    execution_.wind_up();
  } catch (const Error&) {  // of a child that has none of what ran
  }
}

void Session::PartialRun::cancel() {
  frame_.scope->token.cancel(Code::kCancelled, "the run in parts was given up");
}

bool Session::PartialRun::over() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // a part is on its way
  return failed_ || names_.left() == 0;
}

std::vector<Tensor> Session::PartialRun::run(const Part& part, const RunOptions& options) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) throw failed_precondition("another thread is in a part of this run");
  const Request request = names_.request_of(part);
  check_needs(request);
  feed(request, part);
  try {
    const InterruptScope interrupts(options.poll);
    const TokenLink link(options.token, frame_.scope->token);
    return results(request);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

// By plan node: a feed that it waits for and that is not there, or kNothing.
std::vector<int32_t> Session::PartialRun::missing_feeds(const Request& request) const {
  std::vector<int32_t> missing(plan_->nodes.size(), kNothing);
  std::vector<int32_t> stack;
  const auto visit = [&](std::span<const int32_t> nodes, int32_t feed) {
    for (const int32_t n : nodes) {
      if (missing[static_cast<size_t>(n)] != kNothing) continue;
      missing[static_cast<size_t>(n)] = feed;
      stack.push_back(n);
    }
  };
  for (size_t feed = 0; feed < signature_->feeds.size(); ++feed) {
    if (names_.fed(feed) || std::ranges::find(request.feeds, feed) != request.feeds.end()) continue;
    visit(plan_->arg_successors[feed], static_cast<int32_t>(feed));
    while (!stack.empty()) {
      const int32_t n = stack.back();
      stack.pop_back();
      visit(plan_->nodes[static_cast<size_t>(n)].successors, static_cast<int32_t>(feed));
    }
  }
  return missing;
}

// Errors: InvalidArgument where what is asked for needs a feed that is not there.
void Session::PartialRun::check_needs(const Request& request) const {
  const std::vector<int32_t> missing = missing_feeds(request);
  const auto lacks = [&](std::span<const int32_t> waits) {
    for (const int32_t wait : waits) {
      const int32_t feed = wait < 0 ? ~wait : missing[static_cast<size_t>(wait)];
      if (feed == kNothing) continue;
      const auto place = static_cast<size_t>(feed);
      if (!names_.fed(place) && std::ranges::find(request.feeds, place) == request.feeds.end())
        return feed;
    }
    return kNothing;
  };
  for (const size_t i : request.fetches) {
    const int32_t feed = lacks(plan_->fetch_waits[i]);
    if (feed != kNothing) names_.refuse_fetch(i, static_cast<size_t>(feed));
  }
  for (const size_t i : request.targets) {
    const int32_t feed = lacks(plan_->target_waits[i]);
    if (feed != kNothing) names_.refuse_target(i, static_cast<size_t>(feed));
  }
}

// What is borrowed is copied: the run reads it when this call has returned.
void Session::PartialRun::feed(const Request& request, const Part& part) {
  for (size_t i = 0; i < request.feeds.size(); ++i) {
    const size_t place = request.feeds[i];
    const int32_t slot = plan_->arg_slots[place];
    if (slot >= 0) frame_.values[static_cast<size_t>(slot)] = stored_value(part.feeds[i].second);
    names_.note_fed(place);
    execution_.arrive(place);
  }
}

std::vector<Tensor> Session::PartialRun::results(const Request& request) {
  std::vector<int32_t> wanted;
  const auto want = [&](std::span<const int32_t> waits) {
    std::copy_if(waits.begin(), waits.end(), std::back_inserter(wanted),
                 [](int32_t wait) { return wait >= 0; });
  };
  for (const size_t i : request.fetches) want(plan_->fetch_waits[i]);
  for (const size_t i : request.targets) want(plan_->target_waits[i]);
  execution_.run_until(wanted);
  std::vector<Tensor> values;
  for (const size_t i : request.fetches) values.push_back(fetched(frame_, plan_->fetch_slots[i]));
  names_.note_done(request);
  return values;
}

std::string Session::partial_run_setup(const std::shared_ptr<Signature>& signature,
                                       const RunOptions& options,
                                       std::shared_ptr<Exchange> exchange) {
  if (impl_->remote) return impl_->remote->partial_run_setup(signature, options);
  RunLimits limits(options);
  std::shared_ptr<const Plan> plan;
  try {
    plan = signature->plan_in_parts(impl_->planning(*graph_), limits);
  } catch (const Error&) {
    limits.end_planning();
    throw;
  }
  limits.end_planning();
  check_bytes(*plan, options);
  auto run = std::make_shared<PartialRun>(*impl_, *graph_, signature, std::move(plan),
                                          std::move(exchange));
  // Of the process: a handle that another session gave is none here.
  static std::atomic<int64_t> next{0};
  std::string handle = concat("partial_run_", ++next);
  const std::unique_lock lock = impl_->locked();
  if (impl_->closed.load()) throw_session_closed();
  impl_->partial_runs.emplace(handle, std::move(run));
  return handle;
}

void Session::end_partial_run(const std::string& handle) {
  if (impl_->remote) return impl_->remote->end_partial_run(handle);
  std::shared_ptr<PartialRun> run;  // ends when the lock is free
  const std::unique_lock lock = impl_->locked();
  const auto it = impl_->partial_runs.find(handle);
  if (it == impl_->partial_runs.end()) return;
  run = std::move(it->second);
  impl_->partial_runs.erase(it);
  run->cancel();
}

std::vector<Tensor> Session::partial_run(const std::string& handle, const Part& part,
                                         const RunOptions& options) {
  if (impl_->remote) return impl_->remote->partial_run(handle, part, options);
  std::shared_ptr<PartialRun> run;
  {
    const std::unique_lock lock = impl_->locked();
    if (impl_->closed.load()) throw_session_closed();
    const auto it = impl_->partial_runs.find(handle);
    if (it == impl_->partial_runs.end()) throw_no_partial_run(handle);
    run = it->second;
  }
  struct Forget {
    Impl& impl;
    const std::string& handle;
    const PartialRun& run;
    ~Forget() {
      if (!run.over()) return;
      const std::unique_lock lock = impl.locked();
      impl.partial_runs.erase(handle);
    }
  } forget{*impl_, handle, *run};
  return run->run(part, options);
}

}  // namespace treenail
