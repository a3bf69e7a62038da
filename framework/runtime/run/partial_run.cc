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

int64_t key_of(const Output& value) {
  return (static_cast<int64_t>(value.node->id()) << 32) | value.index;
}
int64_t key_of(const Node* node) { return node->id(); }

bool belongs_to(const Output& value, const Graph& graph) {
  return value.node != nullptr && &value.node->graph() == &graph;
}
bool belongs_to(const Node* node, const Graph& graph) {
  return node != nullptr && &node->graph() == &graph;
}

std::string text_of(const Output& value) { return concat("\"", value, "\""); }
std::string text_of(const Node* node) { return concat("\"", node->name(), "\""); }

// Which part of the set-up each of them is. Named twice in the set-up, it is named once in a part.
template <class Thing>
std::unordered_map<int64_t, size_t> places_of(const std::vector<Thing>& things,
                                              std::vector<bool>& named) {
  std::unordered_map<int64_t, size_t> places;
  named.resize(things.size());
  for (size_t i = 0; i < things.size(); ++i)
    named[i] = !places.emplace(key_of(things[i]), i).second;
  return places;
}

template <class Thing>
size_t place_of(const Thing& thing, const Graph& graph,
                const std::unordered_map<int64_t, size_t>& places, const std::vector<bool>& named,
                std::string_view what) {
  if (!belongs_to(thing, graph))
    throw invalid_argument("the ", what, " is not of the session's graph");
  const auto it = places.find(key_of(thing));
  if (it == places.end()) {
    throw invalid_argument("the ", what, " ", text_of(thing),
                           " was not named in partial_run_setup");
  }
  if (named[it->second]) {
    throw invalid_argument("the ", what, " ", text_of(thing),
                           " was named in an earlier part of this run: once is all there is");
  }
  return it->second;
}

}  // namespace

Session::PartialRun::PartialRun(Impl& session, const Graph& graph,
                                std::shared_ptr<Signature> signature,
                                std::shared_ptr<const Plan> plan)
    : graph_(graph),
      signature_(std::move(signature)),
      plan_(std::move(plan)),
      lease_(std::make_unique<FrameLease>(session, *signature_, *plan_)),
      frame_(**lease_),
      feeds_(places_of(signature_->feeds, fed_)),
      fetches_(places_of(signature_->fetches, fetched_)),
      targets_(places_of(signature_->targets, ran_)),
      execution_(*plan_, frame_) {}

Session::PartialRun::~PartialRun() {
  if (over()) return;
  frame_.scope->token.cancel(Code::kCancelled, "the run in parts was given up");
  try {
    execution_.wind_up();
  } catch (const Error&) {  // of a child that has none of what ran
  }
}

bool Session::PartialRun::over() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // a part is on its way
  const auto all = [](const std::vector<bool>& named) {
    return std::find(named.begin(), named.end(), false) == named.end();
  };
  return failed_ || (all(fed_) && all(fetched_) && all(ran_));
}

std::vector<Tensor> Session::PartialRun::run(const Part& part, const RunOptions& options) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) throw failed_precondition("another thread is in a part of this run");
  const Request request = request_of(part);
  for (const auto& [value, tensor] : part.feeds) check_feed(value, tensor);
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

Session::PartialRun::Request Session::PartialRun::request_of(const Part& part) const {
  Request request;
  std::vector<bool> fed = fed_, fetched = fetched_, ran = ran_;
  const auto name = [](std::vector<size_t>& list, std::vector<bool>& named, size_t place) {
    named[place] = true;
    list.push_back(place);
  };
  for (const auto& [value, tensor] : part.feeds)
    name(request.feeds, fed, place_of(value, graph_, feeds_, fed, "feed"));
  for (const Output& value : part.fetches)
    name(request.fetches, fetched, place_of(value, graph_, fetches_, fetched, "fetch"));
  for (const Node* node : part.targets)
    name(request.targets, ran, place_of(node, graph_, targets_, ran, "target"));
  return request;
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
  for (size_t feed = 0; feed < fed_.size(); ++feed) {
    const bool comes = std::ranges::find(request.feeds, feed) != request.feeds.end();
    if (fed_[feed] || comes) continue;
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
  const auto check = [&](std::span<const int32_t> waits, const std::string& what) {
    for (const int32_t wait : waits) {
      int32_t feed = wait < 0 ? ~wait : missing[static_cast<size_t>(wait)];
      if (feed == kNothing) continue;
      const auto place = static_cast<size_t>(feed);
      if (fed_[place] || std::ranges::find(request.feeds, place) != request.feeds.end()) continue;
      throw invalid_argument(what, " cannot be computed from what has been fed so far: it needs ",
                             text_of(signature_->feeds[place]));
    }
  };
  for (const size_t i : request.fetches)
    check(plan_->fetch_waits[i], concat("the fetch ", text_of(signature_->fetches[i])));
  for (const size_t i : request.targets)
    check(plan_->target_waits[i], concat("the target ", text_of(signature_->targets[i])));
}

// What is borrowed is copied: the run reads it when this call has returned.
void Session::PartialRun::feed(const Request& request, const Part& part) {
  for (size_t i = 0; i < request.feeds.size(); ++i) {
    const size_t place = request.feeds[i];
    const int32_t slot = plan_->arg_slots[place];
    if (slot >= 0) frame_.values[static_cast<size_t>(slot)] = stored_value(part.feeds[i].second);
    fed_[place] = true;
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
  for (const size_t i : request.fetches) {
    values.push_back(fetched(frame_, plan_->fetch_slots[i]));
    fetched_[i] = true;
  }
  for (const size_t i : request.targets) ran_[i] = true;
  return values;
}

std::string Session::partial_run_setup(const std::shared_ptr<Signature>& signature,
                                       const RunOptions& options) {
  if (impl_->remote) throw unimplemented("runs in parts are for sessions of this process");
  RunLimits limits(options);
  std::shared_ptr<const Plan> plan;
  try {
    plan = signature->plan_in_parts(impl_->planning(*graph_), limits);
  } catch (const Error&) {
    limits.end_planning();
    throw;
  }
  limits.end_planning();
  auto run = std::make_shared<PartialRun>(*impl_, *graph_, signature, std::move(plan));
  // Of the process: a handle that another session gave is none here.
  static std::atomic<int64_t> next{0};
  std::string handle = concat("partial_run_", ++next);
  const std::unique_lock lock = impl_->locked();
  if (impl_->closed.load()) throw_session_closed();
  impl_->partial_runs.emplace(handle, std::move(run));
  return handle;
}

std::vector<Tensor> Session::partial_run(const std::string& handle, const Part& part,
                                         const RunOptions& options) {
  std::shared_ptr<PartialRun> run;
  {
    const std::unique_lock lock = impl_->locked();
    if (impl_->closed.load()) throw_session_closed();
    const auto it = impl_->partial_runs.find(handle);
    if (it == impl_->partial_runs.end()) {
      throw invalid_argument("\"", handle, "\" is no partial run that goes on in this session: it ",
                             "has ended, or partial_run_setup() did not give it");
    }
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
