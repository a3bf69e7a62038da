// SPDX-License-Identifier: Apache-2.0
// One step of a plan: the master's own piece runs on the thread that asks, the others are asked for
// by message meanwhile. When one fails the others are cancelled, and the step ends when all have
// ended.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/system_seed.h"
#include "framework/distributed/master_plan.h"

namespace treenail {
namespace {

constexpr std::chrono::milliseconds kPollPeriod{50};

// Steps of all masters: what one meets in a worker belongs to no other.
uint64_t next_step() {
  static std::atomic<uint64_t> next{system_seed()};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    return found.code() == Code::kCancelled;
  } catch (...) {
    return false;
  }
}

void add(RunMetadata& sum, const protocol::RunReply& piece) {
  sum.nodes_executed += piece.nodes_executed;
  sum.arena_bytes += piece.arena_bytes;
  sum.peak_bytes += piece.peak_bytes;
  sum.cost_ns += piece.cost_ns;
  sum.specialized &= piece.specialized;
}

}  // namespace

class Master::Run {
 public:
  Run(Master& master, const Session& session, const Plan& plan, const protocol::RunRequest& request,
      std::span<const Tensor> feeds, RunMetadata& metadata)
      : master_(master),
        session_(session),
        plan_(plan),
        request_(request),
        feeds_(feeds),
        metadata_(metadata),
        step_(next_step()),
        results_(plan.num_fetches) {
    metadata_ = {};
    metadata_.specialized = true;
  }

  std::vector<Tensor> run(const RunOptions& options) {
    const PlanPiece* own = nullptr;
    for (const PlanPiece& piece : plan_.pieces) {
      if (piece.task == master_.own_.task()) {
        own = &piece;
      } else {
        ask(piece);
      }
    }
    if (own != nullptr) run_own(*own, options);
    wait(options);
    if (!failed_) return std::move(results_);
    for (const PlanPiece& piece : plan_.pieces) give_up(piece);
    std::rethrow_exception(first_);
  }

 private:
  // A piece that another task runs.
  struct Asked final : RpcPeer::Answer {
    Asked(Run& run, const PlanPiece& piece) : run(run), piece(piece) {}
    void answered(std::exception_ptr error, const Message* reply) noexcept override {
      run.answered(*this, error, reply);
    }
    Run& run;
    const PlanPiece& piece;
    std::unique_ptr<RpcCalling> calling;
  };

  std::vector<Tensor> feeds_of(const PlanPiece& piece) const {
    std::vector<Tensor> feeds;
    for (const size_t number : piece.feeds) feeds.push_back(feeds_[number]);
    return feeds;
  }

  protocol::RunRequest request_for(const PlanPiece& piece) const {
    return {request_.session, piece.number, request_.timeout_ms, step_,
            session_.incarnations.at(piece.task)};
  }

  Asked& add_asked(const PlanPiece& piece) {
    const std::lock_guard lock(mutex_);
    ++waiting_;
    return *asked_.emplace_back(std::make_unique<Asked>(*this, piece));
  }

  void ask(const PlanPiece& piece) {
    Asked& asked = add_asked(piece);
    try {
      auto calling = master_.own_.peer(piece.task)
                         .start(protocol::worker::kRunPiece, protocol::write(request_for(piece)),
                                feeds_of(piece), request_.timeout_ms, asked);
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
      take(asked.piece, reply->tensors, protocol::read<protocol::RunReply>(reply->fields()));
    } catch (...) {
      fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --waiting_;
    changed_.notify_all();
  }

  void run_own(const PlanPiece& piece, const RunOptions& options) {
    RunOptions own = options;
    const TokenLink link(options.token, token_);
    own.token = &token_;
    RunMetadata did;
    try {
      const std::vector<Tensor> values =
          master_.own_.run_piece(request_for(piece), feeds_of(piece), own, did);
      take(piece, values, protocol::reply_of(did));
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void take(const PlanPiece& piece, std::span<const Tensor> values,
            const protocol::RunReply& reply) {
    if (values.size() != piece.fetches.size()) {
      throw data_loss(to_text(piece.task), " gave ", values.size(), " values instead of ",
                      piece.fetches.size());
    }
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < values.size(); ++i) results_[piece.fetches[i]] = values[i];
    add(metadata_, reply);
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
    if (piece.task == master_.own_.task()) return master_.own_.give_up_step(step_);
    master_.own_.peer(piece.task)
        .tell(protocol::worker::kGiveUpStep, protocol::write(protocol::Handle{"", step_}), true);
  }

  Master& master_;
  const Session& session_;
  const Plan& plan_;
  const protocol::RunRequest& request_;
  const std::span<const Tensor> feeds_;
  RunMetadata& metadata_;
  const uint64_t step_;
  CancellationToken token_;  // of its own piece
  std::mutex mutex_;         // guards what follows, and what Asked holds
  std::vector<std::unique_ptr<Asked>> asked_;
  std::condition_variable changed_;
  std::vector<Tensor> results_;
  std::exception_ptr first_;  // of the errors, but for those of pieces that were cancelled
  int waiting_ = 0;
  bool failed_ = false;
};

std::vector<Tensor> Master::run(const Caller& caller, const protocol::RunRequest& given,
                                std::span<const Tensor> feeds, const RunOptions& options,
                                RunMetadata& metadata) {
  const std::shared_ptr<Session> found = session(caller, given.session);
  protocol::RunRequest request = given;
  if (const int64_t most = own_.limits().step_seconds * 1000;
      most > 0 && (request.timeout_ms <= 0 || request.timeout_ms > most))
    request.timeout_ms = most;
  std::shared_ptr<Plan> plan;
  {
    const std::lock_guard lock(found->mutex);
    const auto at = found->plans.find(request.number);
    if (at == found->plans.end())
      throw not_found("the session has no plan ", request.number, ": it was forgotten");
    plan = at->second;
  }
  for (const PlanPiece& piece : plan->pieces) {
    for (const size_t number : piece.feeds) {
      if (number >= feeds.size())
        throw invalid_argument("the run needs more than the ", feeds.size(), " feeds it was given");
    }
  }
  return Run(*this, *found, *plan, request, feeds, metadata).run(options);
}

}  // namespace treenail
