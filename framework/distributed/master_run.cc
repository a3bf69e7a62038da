// SPDX-License-Identifier: Apache-2.0
// One step of a plan: the master's own piece runs on the thread that asks, the others are asked for
// by message meanwhile. When one fails the others are cancelled, and the step ends when all have
// ended.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/system_seed.h"
#include "framework/distributed/master_plan.h"
#include "framework/distributed/step_trace.h"

namespace treenail {
namespace {

constexpr std::chrono::milliseconds kPollPeriod{50};

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    return found.code() == Code::kCancelled;
  } catch (...) {
    return false;
  }
}

}  // namespace

uint64_t next_step() {
  static std::atomic<uint64_t> next{system_seed()};
  return next.fetch_add(1, std::memory_order_relaxed);
}

class Master::Run {
 public:
  Run(Master& master, const Session& session, const StepCalls& step, RunMetadata& metadata)
      : master_(master),
        session_(session),
        step_(step),
        metadata_(metadata),
        results_(step.num_results) {
    metadata_ = {};
    metadata_.specialized = true;
  }

  std::vector<Tensor> run(const RunOptions& options) {
    if (step_.trace) trace_.emplace(clocks(options));
    const PieceCall* own = nullptr;
    for (const PieceCall& call : step_.calls) {
      if (call.piece->task == master_.own_.task()) {
        own = &call;
      } else {
        ask(call);
      }
    }
    if (own != nullptr) run_own(*own, options);
    wait(options);
    if (!failed_) {
      if (trace_) trace_->finish(metadata_);
      return std::move(results_);
    }
    for (const PieceCall& call : step_.calls) give_up(*call.piece);
    std::rethrow_exception(first_);
  }

 private:
  // A piece that another task runs.
  struct Asked final : RpcPeer::Answer {
    Asked(Run& run, const PieceCall& call) : run(run), call(call) {}
    void answered(std::exception_ptr error, const Message* reply) noexcept override {
      run.answered(*this, error, reply);
    }
    Run& run;
    const PieceCall& call;
    std::unique_ptr<RpcCalling> calling;
  };

  std::map<TaskName, ClockOffset> clocks(const RunOptions& options) const {
    std::map<TaskName, ClockOffset> found;
    for (const PieceCall& call : step_.calls) {
      const TaskName& task = call.piece->task;
      if (task == master_.own_.task()) continue;
      found[task] = clock_of(master_.own_.peer(task), step_.timeout_ms, options.token);
    }
    return found;
  }

  protocol::RunRequest request_for(const PieceCall& call) const {
    protocol::RunRequest request = call.request;
    request.session = step_.session;
    request.number = call.piece->number;
    request.timeout_ms = step_.timeout_ms;
    request.step = step_.number;
    request.incarnation = session_.incarnations.at(call.piece->task);
    request.trace = step_.trace;
    return request;
  }

  Asked& add_asked(const PieceCall& call) {
    const std::lock_guard lock(mutex_);
    ++waiting_;
    return *asked_.emplace_back(std::make_unique<Asked>(*this, call));
  }

  void ask(const PieceCall& call) {
    Asked& asked = add_asked(call);
    try {
      auto calling = master_.own_.peer(call.piece->task)
                         .start(protocol::worker::kRunPiece, protocol::write(request_for(call)),
                                call.feeds, step_.timeout_ms, asked);
      const std::lock_guard lock(mutex_);
      asked.calling = std::move(calling);
      if (failed_) asked.calling->cancel();
    } catch (...) {
      fail(std::current_exception());
      const std::lock_guard lock(mutex_);
      --waiting_;
    }
  }

  void answered(const Asked& asked, const std::exception_ptr& error, const Message* reply) {
    try {
      if (error != nullptr) std::rethrow_exception(error);
      take(asked.call, reply->tensors,
           protocol::metadata_of(protocol::read<protocol::RunReply>(reply->fields())));
    } catch (...) {
      fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --waiting_;
    changed_.notify_all();
  }

  void run_own(const PieceCall& call, const RunOptions& options) {
    RunOptions own = options;
    const TokenLink link(options.token, token_);
    own.token = &token_;
    RunMetadata did;
    try {
      const std::vector<Tensor> values =
          master_.own_.run_piece(request_for(call), call.feeds, own, did);
      take(call, values, std::move(did));
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void take(const PieceCall& call, std::span<const Tensor> values, RunMetadata did) {
    const TaskName& task = call.piece->task;
    if (values.size() != call.results.size()) {
      throw data_loss(to_text(task), " gave ", values.size(), " values instead of ",
                      call.results.size());
    }
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < values.size(); ++i) results_[call.results[i]] = values[i];
    if (trace_) trace_->move_to_own_clock(did, task);
    add_piece(metadata_, std::move(did));
  }

  // The others have nothing to go on for.
  void fail(const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex_);
      if (first_ == nullptr || (is_cancelled(first_) && !is_cancelled(error))) first_ = error;
      if (std::exchange(failed_, true)) return;
      for (const auto& each : asked_)
        if (each->calling != nullptr) each->calling->cancel();
    }
    token_.cancel(Code::kCancelled, "another task of the step has failed");
  }

  void wait(const RunOptions& options) {
    const InterruptScope interrupts(options.poll);
    std::unique_lock lock(mutex_);
    while (waiting_ > 0) {
      if (changed_.wait_for(lock, kPollPeriod, [&] { return waiting_ == 0; })) return;
      lock.unlock();
      try {
        if (!token_.cancelled()) poll_interrupt();
        if (!token_.cancelled() && options.token != nullptr) options.token->check();
      } catch (...) {
        fail(std::current_exception());
      }
      lock.lock();
    }
  }

  void give_up(const PlanPiece& piece) {
    if (piece.task == master_.own_.task()) return master_.own_.give_up_step(step_.number);
    master_.own_.peer(piece.task)
        .tell(protocol::worker::kGiveUpStep, protocol::write(protocol::Handle{"", step_.number}),
              true);
  }

  Master& master_;
  const Session& session_;
  const StepCalls& step_;
  RunMetadata& metadata_;
  std::optional<StepTrace> trace_;  // where it is wanted
  CancellationToken token_;         // of its own piece
  std::mutex mutex_;                // guards what follows, and what Asked holds
  std::vector<std::unique_ptr<Asked>> asked_;
  std::condition_variable changed_;
  std::vector<Tensor> results_;
  std::exception_ptr first_;  // of the errors, but for those of pieces that were cancelled
  int waiting_ = 0;
  bool failed_ = false;
};

std::vector<Tensor> Master::run_step(const Session& session, const StepCalls& step,
                                     const RunOptions& options, RunMetadata& metadata) {
  return Run(*this, session, step, metadata).run(options);
}

int64_t Master::within_limit(int64_t timeout_ms) const {
  const int64_t most = own_.limits().step_seconds * 1000;
  return most > 0 && (timeout_ms <= 0 || timeout_ms > most) ? most : timeout_ms;
}

std::shared_ptr<Master::Plan> Master::plan_of(Session& session, uint64_t number) {
  const std::lock_guard lock(session.mutex);
  const auto at = session.plans.find(number);
  if (at == session.plans.end())
    throw not_found("the session has no plan ", number, ": it was forgotten");
  return at->second;
}

std::vector<Tensor> Master::run(const Caller& caller, const protocol::RunRequest& request,
                                std::span<const Tensor> feeds, const RunOptions& options,
                                RunMetadata& metadata) {
  const std::shared_ptr<Session> found = session(caller, request.session);
  const std::shared_ptr<Plan> plan = plan_of(*found, request.number);
  StepCalls step{{},
                 plan->num_fetches,
                 next_step(),
                 request.session,
                 within_limit(request.timeout_ms),
                 request.trace};
  for (const PlanPiece& piece : plan->pieces) {
    PieceCall& call = step.calls.emplace_back(PieceCall{&piece, {}, {}, piece.fetches});
    for (const size_t number : piece.feeds) {
      if (number >= feeds.size())
        throw invalid_argument("the run needs more than the ", feeds.size(), " feeds it was given");
      call.feeds.push_back(feeds[number]);
    }
  }
  return run_step(*found, step, options, metadata);
}

}  // namespace treenail
