// SPDX-License-Identifier: Apache-2.0
// Runs in parts of a worker's pieces: each lives in its piece's session, with an exchange that
// lasts from part to part, until its master ends it, a part fails, or the piece goes.
#include <span>

#include "framework/base/error.h"
#include "framework/distributed/step_exchange.h"
#include "framework/distributed/worker_piece.h"
#include "framework/runtime/run/signature.h"
#include "framework/tensor/charged.h"

namespace treenail {
namespace {

// Its feeds count for `account`. Errors: InvalidArgument for positions that the piece does not
// have; ResourceExhausted.
Session::Part part_of(const Session::Signature& signature, const protocol::RunRequest& request,
                      std::span<const Tensor> feeds, MemoryAccount& account) {
  const auto at = [](const auto& things, uint64_t position) {
    if (position < things.size()) return things[position];
    throw invalid_argument("a part names number ", position, " of ", things.size(),
                           " feeds, fetches or targets of the piece");
  };
  if (feeds.size() != request.feeds.size()) {
    throw invalid_argument("a part has ", feeds.size(), " values for ", request.feeds.size(),
                           " feeds");
  }
  Session::Part part;
  for (size_t i = 0; i < feeds.size(); ++i)
    part.feeds.emplace_back(at(signature.feeds, request.feeds[i]), charged(feeds[i], account));
  for (const uint64_t fetch : request.fetches) part.fetches.push_back(at(signature.fetches, fetch));
  for (const uint64_t target : request.targets)
    part.targets.push_back(at(signature.targets, target));
  return part;
}

}  // namespace

// Lasts as long as the run in parts. Who waits elsewhere for values of a run that has ended early
// is told.
class Worker::PartExchange final : public Exchange {
 public:
  PartExchange(Worker& worker, const protocol::RunRequest& request, const GroupedReceives& receives)
      : request_(request),
        peer_of_{worker},
        use_(worker, request.step),
        exchange_(request_, use_.rendezvous(), *worker.neighbours_, receives, peer_of_) {}
  ~PartExchange() override {
    use_.rendezvous().abort(std::make_exception_ptr(cancelled("the run in parts was given up")));
  }
  PartExchange(const PartExchange&) = delete;
  PartExchange& operator=(const PartExchange&) = delete;

  void send(std::string_view key, Tensor value) override { exchange_.send(key, std::move(value)); }
  void receive(std::string_view key, std::string_view from, RunContext c, Done done) override {
    exchange_.receive(key, from, c, done);
  }
  void run_piece(const PieceAt& piece, RunContext c, Done done) override {
    exchange_.run_piece(piece, c, done);
  }

 private:
  struct PeerOf {
    Worker& worker;
    const RpcPeer& operator()(std::string_view task) const { return worker.peer(task); }
  };
  const protocol::RunRequest request_;  // that has begun it
  const PeerOf peer_of_;
  StepUse use_;
  StepExchange exchange_;
};

std::string Worker::open_run(Piece& piece, const protocol::RunRequest& request,
                             const RunOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = piece.open_runs.find(request.step);
    if (at != piece.open_runs.end()) return at->second.handle;
  }
  if (!request.begins) {
    throw error_of(Code::kAborted, {treenail::to_text(options_.task),
                                    " has no such run in parts any more: it was given up"});
  }
  RunOptions run_options = options;
  run_options.most_bytes = options_.limits.memory_bytes;
  run_options.timeout_ms = request.timeout_ms;
  const auto exchange = std::make_shared<PartExchange>(*this, request, piece.receives);
  std::string handle = piece.session.partial_run_setup(piece.signature, run_options, exchange);
  bool mine = false;
  {
    const std::lock_guard lock(mutex_);
    mine = piece.open_runs.try_emplace(request.step, Piece::OpenRun{handle, exchange}).second;
  }
  if (mine) return handle;
  piece.session.end_partial_run(handle);
  throw invalid_argument("a run in parts was begun twice");
}

std::vector<Tensor> Worker::run_part(const protocol::RunRequest& request,
                                     std::span<const Tensor> feeds, const RunOptions& options) {
  const std::shared_ptr<Piece> found = piece(request.session, request.number);
  const MemoryScope memory(found->account.get());
  try {
    const std::string handle = open_run(*found, request, options);
    return found->session.partial_run(
        handle, part_of(*found->signature, request, feeds, *found->account), options);
  } catch (...) {
    StepUse(*this, request.step).rendezvous().abort(std::current_exception());
    end_run(*found, request.step);
    throw;
  }
}

void Worker::end_run(Piece& piece, uint64_t step) {
  Piece::OpenRun gone;  // when the lock is free
  {
    const std::lock_guard lock(mutex_);
    const auto at = piece.open_runs.find(step);
    if (at == piece.open_runs.end()) return;
    gone = std::move(at->second);
    piece.open_runs.erase(at);
  }
  piece.session.end_partial_run(gone.handle);
}

void Worker::end_run(const protocol::RunRequest& request) {
  std::shared_ptr<Piece> found;
  {
    const std::lock_guard lock(mutex_);
    const auto session = sessions_.find(request.session);
    if (session == sessions_.end()) return;
    const auto at = session->second.pieces.find(request.number);
    if (at == session->second.pieces.end()) return;
    found = at->second;
  }
  end_run(*found, request.step);
}

void Worker::end_runs() {
  std::vector<std::pair<std::shared_ptr<Piece>, uint64_t>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, session] : sessions_)
      for (const auto& [number, piece] : session.pieces)
        for (const auto& [step, handle] : piece->open_runs) open.emplace_back(piece, step);
  }
  for (const auto& [piece, step] : open) end_run(*piece, step);
}

protocol::PieceNeeds Worker::part_needs(const protocol::Handle& handle, const RunOptions& options) {
  const std::shared_ptr<Piece> found = piece(handle.session, handle.number);
  protocol::PieceNeeds needs;
  for (const Session::PartNeeds& each : found->session.part_needs(found->signature, options)) {
    needs.ends.push_back({{each.feeds.begin(), each.feeds.end()}, each.received});
  }
  return needs;
}

}  // namespace treenail
