// SPDX-License-Identifier: Apache-2.0
// Runs in parts over several tasks. The master knows which feeds have come and which values the
// pieces have sent each other; each part runs in those pieces that have to do with it, up to what
// it asks for and to the values that other pieces need for that.
#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "framework/distributed/master_plan.h"
#include "framework/runtime/run/session.h"

namespace treenail {
namespace {

void check_positions(const std::vector<uint64_t>& positions, size_t most, std::string_view what) {
  for (const uint64_t position : positions) {
    if (position >= most)
      throw invalid_argument("a part names ", what, " number ", position, " of ", most);
  }
}

bool has(const std::vector<uint64_t>& positions, size_t position) {
  return std::ranges::find(positions, position) != positions.end();
}

// The calls that one part needs, by piece.
class PartCalls {
 public:
  PartCalls(const Master::Plan& plan, const Master::OpenRun& run) : run_(run) {
    for (const PlanPiece& piece : plan.pieces) calls_.push_back({&piece, {}, {}, {}});
  }

  void feed(size_t feed, const Tensor& value) {
    each_with(&PlanPiece::feeds, feed, [&](PieceCall& call, size_t at) {
      call.request.feeds.push_back(at);
      call.feeds.push_back(value);
    });
  }
  void fetch(size_t fetch, size_t result) {
    each_with(&PlanPiece::fetches, fetch, [&](PieceCall& call, size_t at) {
      call.request.fetches.push_back(at);
      call.results.push_back(result);
    });
  }
  void run(size_t target) {
    each_with(&PlanPiece::targets, target, [&](const PieceCall& call, size_t at) {
      run_at(static_cast<size_t>(&call - calls_.data()), at);
    });
  }
  // Once in a run.
  void run_at(size_t piece, size_t target) {
    auto& targets = calls_[piece].request.targets;
    if (!run_.done.contains({piece, target}) && !has(targets, target)) targets.push_back(target);
  }

  // Those that have anything to do, marked as parts.
  std::vector<PieceCall> take(Master::OpenRun& run) {
    std::vector<PieceCall> some;
    for (size_t p = 0; p < calls_.size(); ++p) {
      PieceCall& call = calls_[p];
      protocol::RunRequest& request = call.request;
      if (request.feeds.empty() && request.fetches.empty() && request.targets.empty()) continue;
      request.in_parts = true;
      request.begins = !run.begun[p];
      run.begun[p] = true;
      for (const uint64_t target : request.targets) run.done.emplace(p, target);
      some.push_back(std::move(call));
    }
    return some;
  }

 private:
  // Calls f(call, position) of each piece that has the plan's number `wanted` among those.
  template <class F>
  void each_with(std::vector<size_t> PlanPiece::*those, size_t wanted, F&& f) {
    for (PieceCall& call : calls_) {
      const std::vector<size_t>& all = call.piece->*those;
      const auto at = std::ranges::find(all, wanted);
      if (at != all.end()) f(call, static_cast<size_t>(at - all.begin()));
    }
  }

  const Master::OpenRun& run_;
  std::vector<PieceCall> calls_;
};

// Whether the part asks for what cannot be computed yet; says so in `reply`.
bool lacks_feed(const Master::OpenRun& run, const protocol::RunRequest& part,
                protocol::RunReply& reply) {
  const size_t num_fetches = run.plan->num_fetches;
  std::vector<size_t> ends(part.fetches.begin(), part.fetches.end());
  for (const uint64_t target : part.targets) ends.push_back(num_fetches + target);
  for (size_t i = 0; i < ends.size(); ++i) {
    for (const size_t feed : run.plan->needs[ends[i]].feeds) {
      if (run.fed[feed] || has(part.feeds, feed)) continue;
      reply.lacks_feed = feed + 1;
      reply.lacking = i + 1;
      return true;
    }
  }
  return false;
}

}  // namespace

protocol::PieceNeeds Master::piece_needs(const PlanPiece& piece, const std::string& session,
                                         const RunOptions& options) {
  const protocol::Handle handle{session, piece.number};
  if (piece.task == own_.task()) return own_.part_needs(handle, options);
  const Message reply = own_.peer(piece.task)
                            .call(protocol::worker::kGetPartNeeds, protocol::write(handle), {},
                                  {.timeout_ms = options.timeout_ms, .repeatable = true});
  return protocol::read<protocol::PieceNeeds>(reply.fields());
}

uint64_t Master::begin_parts(const Caller& caller, const protocol::RunRequest& request,
                             const RunOptions& options) {
  const std::shared_ptr<Session> found = session(caller, request.session);
  const std::shared_ptr<Plan> plan = plan_of(*found, request.number);
  {
    const std::lock_guard lock(plan->mutex);
    if (plan->needs.empty() && plan->num_fetches + plan->num_targets > 0) {
      std::vector<PieceEnds> ends;
      for (const PlanPiece& piece : plan->pieces) {
        ends.push_back({piece_needs(piece, request.session, options), piece.feeds, piece.fetches,
                        piece.targets, piece.sends});
      }
      plan->needs = plan_needs(ends, plan->num_fetches, plan->num_targets);
    }
  }
  return add_open_run(*found, std::make_shared<OpenRun>(plan, next_step()));
}

// Room is made by what nobody has gone on with for long.
uint64_t Master::add_open_run(Session& session, std::shared_ptr<OpenRun> made) {
  const Limits& limits = own_.limits();
  const auto expired = Session::Clock::now() - std::chrono::seconds(limits.idle_seconds);
  std::vector<std::pair<std::string, std::shared_ptr<OpenRun>>> gone;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    int64_t open = 0;
    for (const auto& [handle, each] : sessions_) {
      if (each->owner != session.owner) continue;
      const std::lock_guard session_lock(each->mutex);
      for (auto at = each->open_runs.begin(); at != each->open_runs.end();) {
        const bool idle = at->second.use_count() == 1 && at->second->used.load() < expired;
        if (idle) gone.emplace_back(handle, at->second);
        at = idle ? each->open_runs.erase(at) : std::next(at);
      }
      open += static_cast<int64_t>(each->open_runs.size());
    }
    if (open < limits.partial_runs) {
      const std::lock_guard session_lock(session.mutex);
      number = ++session.last_plan;
      session.open_runs.emplace(number, std::move(made));
    }
  }
  for (const auto& [handle, run] : gone) end_parts(handle, *run);
  if (number > 0) return number;
  throw error_of(Code::kResourceExhausted,
                 {"there are ", limits.partial_runs,
                  " runs in parts that have not ended, and this server takes no more "
                  "(--max-partial-runs): go on with them, or close their sessions"});
}

std::vector<Tensor> Master::run_part(const Caller& caller, const protocol::RunRequest& part,
                                     std::span<const Tensor> feeds, const RunOptions& options,
                                     protocol::RunReply& reply) {
  const std::shared_ptr<Session> found = session(caller, part.session);
  std::shared_ptr<OpenRun> run;
  {
    const std::lock_guard lock(found->mutex);
    const auto at = found->open_runs.find(part.number);
    if (at == found->open_runs.end())
      throw not_found("the session has no run in parts ", part.number, ": it has ended");
    run = at->second;
  }
  const std::unique_lock busy(run->busy, std::try_to_lock);
  if (!busy) throw failed_precondition("another part of this run is on its way");
  run->used = Session::Clock::now();
  const Plan& plan = *run->plan;
  check_positions(part.feeds, plan.num_feeds, "feed");
  check_positions(part.fetches, plan.num_fetches, "fetch");
  check_positions(part.targets, plan.num_targets, "target");
  if (feeds.size() != part.feeds.size())
    throw invalid_argument("a part has ", feeds.size(), " values for ", part.feeds.size(),
                           " feeds");
  if (lacks_feed(*run, part, reply)) return {};
  try {
    std::vector<Tensor> values = run_part_in_pieces(*found, *run, part, feeds, options);
    if (part.last) forget_parts(*found, part.session, part.number);
    return values;
  } catch (...) {
    forget_parts(*found, part.session, part.number);
    throw;
  }
}

std::vector<Tensor> Master::run_part_in_pieces(const Session& session, OpenRun& run,
                                               const protocol::RunRequest& part,
                                               std::span<const Tensor> feeds,
                                               const RunOptions& options) {
  const Plan& plan = *run.plan;
  PartCalls calls(plan, run);
  for (size_t i = 0; i < feeds.size(); ++i) {
    calls.feed(part.feeds[i], feeds[i]);
    run.fed[part.feeds[i]] = true;
  }
  const auto send = [&](size_t end) {
    for (const auto& [piece, target] : plan.needs[end].targets) calls.run_at(piece, target);
  };
  for (size_t i = 0; i < part.fetches.size(); ++i) {
    calls.fetch(part.fetches[i], i);
    send(part.fetches[i]);
  }
  for (const uint64_t target : part.targets) {
    calls.run(target);
    send(plan.num_fetches + target);
  }
  StepCalls step{calls.take(run), part.fetches.size(),           run.step,
                 part.session,    within_limit(part.timeout_ms), false};
  RunMetadata metadata;
  return run_step(session, step, options, metadata);
}

void Master::end_parts(const Caller& caller, const protocol::Handle& handle) {
  const std::shared_ptr<Session> found = session(caller, handle.session);
  forget_parts(*found, handle.session, handle.number);
}

void Master::forget_parts(Session& session, const std::string& handle, uint64_t number) {
  std::shared_ptr<OpenRun> run;
  {
    const std::lock_guard lock(session.mutex);
    const auto at = session.open_runs.find(number);
    if (at == session.open_runs.end()) return;
    run = std::move(at->second);
    session.open_runs.erase(at);
  }
  end_parts(handle, *run);
}

// Also in pieces that have not begun it: a call that was given up may still arrive.
void Master::end_parts(const std::string& session, const OpenRun& run) {
  for (const PlanPiece& piece : run.plan->pieces) {
    protocol::RunRequest gone;
    gone.session = session;
    gone.number = piece.number;
    gone.step = run.step;
    if (piece.task == own_.task()) {
      own_.end_run(gone);
    } else {
      own_.peer(piece.task).tell(protocol::worker::kEndPartialRun, protocol::write(gone), true);
    }
  }
}

}  // namespace treenail
