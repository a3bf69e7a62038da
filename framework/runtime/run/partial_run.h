// SPDX-License-Identifier: Apache-2.0
// One run in parts: a frame whose arguments arrive one by one. Between the calls nothing of it runs
// but what waits for others, and that only becomes ready.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/fork.h"
#include "framework/runtime/kernel/kernel_exchange.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/executor.h"
#include "framework/runtime/run/part_names.h"
#include "framework/runtime/run/session.h"

namespace treenail {

class Session::PartialRun {
 public:
  PartialRun(Impl& session, const Graph& graph, std::shared_ptr<Signature> signature,
             std::shared_ptr<const Plan> plan, std::shared_ptr<Exchange> exchange);
  // Cancels what waits, and returns when it has ended.
  ~PartialRun();
  PartialRun(const PartialRun&) = delete;
  PartialRun& operator=(const PartialRun&) = delete;

  // As Session::partial_run().
  std::vector<Tensor> run(const Part& part, const RunOptions& options);
  // A part that is on its way ends with Cancelled.
  void cancel();
  // Nothing is left to feed, fetch or run, or an error has ended it.
  bool over() const;

 private:
  using Request = PartNames::Request;

  void check_needs(const Request& request) const;
  std::vector<int32_t> missing_feeds(const Request& request) const;
  void feed(const Request& request, const Part& part);
  std::vector<Tensor> results(const Request& request);

  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<Signature> signature_;
  const std::shared_ptr<const Plan> plan_;
  const std::unique_ptr<FrameLease> lease_;
  Frame& frame_;
  mutable ForkMutex mutex_;  // held by who runs a part; guards what follows
  PartNames names_;
  bool failed_ = false;
  Execution execution_;
};

}  // namespace treenail
