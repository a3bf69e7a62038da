// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/worker.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/spin.h"
#include "framework/base/system_seed.h"
#include "framework/device/device.h"
#include "framework/device/memory_account.h"
#include "framework/distributed/own_figures.h"
#include "framework/distributed/step_exchange.h"
#include "framework/distributed/step_trace.h"
#include "framework/distributed/worker_piece.h"
#include "framework/graph/serialize.h"
#include "framework/runtime/kernel/installed_devices.h"
#include "framework/tensor/charged.h"

namespace treenail {
namespace {

SessionOptions session_options(const protocol::Settings& settings, const Worker::Options& worker,
                               std::shared_ptr<ResourceManager> resources) {
  SessionOptions options;
  options.fold_constants = settings.fold_constants;
  options.merge_common_subexpressions = settings.merge_common_subexpressions;
  options.fuse_elementwise = settings.fuse_elementwise;
  options.allow_soft_placement = settings.allow_soft_placement;
  options.log_placement = settings.log_placement;
  options.device_count = worker.device_count;
  options.task = device_of_task(worker.task, {});
  options.resources = std::move(resources);
  return options;
}

}  // namespace

// What sessions of one owner have here; it lasts as long as the worker.
struct Worker::State {
  State(const FileRoots* roots, std::string whose, int64_t most_held)
      : account(new MemoryAccount(std::move(whose), most_held)),
        full(std::make_shared<ResourceManager>()),
        confined(std::make_shared<ResourceManager>(*full, roots)) {
    full->attach();
  }
  ~State() { full->detach(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const IntrusivePtr<MemoryAccount> account;
  // The same state for sessions of the server's own process, and of others.
  const std::shared_ptr<ResourceManager> full, confined;
};

Worker::Worker(Options options)
    : options_(std::move(options)),
      incarnation_(system_seed()),
      access_(options_.access, treenail::to_text(options_.task)) {
  static_cast<void>(options_.cluster.address(options_.task));
  open_installed_devices();
  for (const Device* device : session_devices(options_.device_count))
    devices_.push_back(treenail::to_text(device_of_task(options_.task, device->name())));
  figures_ = figures_to_bytes(own_figures(devices_, options_.limits.memory_bytes));
  neighbours_ = std::make_unique<Neighbours>(*this, incarnation_, options_.mpi);
}

Worker::~Worker() {
  end_runs();
  neighbours_.reset();
  sessions_.clear();
}

protocol::TaskStatus Worker::status(const protocol::ReceiveRequest& question) const {
  protocol::TaskStatus found{treenail::to_text(options_.task), incarnation_, devices_,
                             monotonic_ns(), figures_};
  if (mpi() == nullptr) return found;
  found.mpi_rank = mpi()->own().rank;
  found.mpi_token = mpi()->own().token;
  found.mpi_sends = mpi()->sends({question.mpi_rank, question.mpi_token}, question.mpi_tag);
  return found;
}

std::shared_ptr<Worker::State> Worker::state_of(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<State>& state = states_[owner];
  if (state == nullptr) {
    const bool knows = options_.credentials != nullptr;
    state = std::make_shared<State>(
        access_.file_roots(),
        concat(knows ? concat("the sessions of \"", owner, "\"") : "all sessions", " at ",
               treenail::to_text(options_.task)),
        options_.limits.most_held(knows));
  }
  return state;
}

std::map<std::string, int64_t> Worker::held_bytes() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int64_t> held;
  for (const auto& [owner, state] : states_) held.emplace(owner, state->account->held());
  return held;
}

uint64_t Worker::register_piece(const protocol::Program& program, Trust trust) {
  const std::shared_ptr<State> state = state_of(program.owner);
  const MemoryScope memory(state->account.get());
  std::shared_ptr<Graph> graph = graph_from_bytes(program.graph, Exchanges::kAllowed);
  const bool own = trust == Trust::kOwnProcess;
  if (!own) access_.check(*graph);
  const auto made = std::make_shared<Piece>(
      program, state->account, std::move(graph),
      session_options(program.settings, options_, own ? state->full : state->confined));
  std::vector<Pieces> gone;  // when the lock is free
  const std::lock_guard lock(mutex_);
  gone = take_unused();
  SessionPieces& session = sessions_[program.session];
  session.used = std::chrono::steady_clock::now();
  session.pieces.emplace(++next_piece_, made);
  return next_piece_;
}

std::vector<Worker::Pieces> Worker::take_unused() {
  std::vector<Pieces> taken;
  const auto expired =
      std::chrono::steady_clock::now() - std::chrono::seconds(options_.limits.idle_seconds);
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    const bool runs = std::ranges::any_of(
        at->second.pieces, [](const auto& piece) { return piece.second.use_count() > 1; });
    if (runs || at->second.used > expired) {
      ++at;
      continue;
    }
    taken.push_back(std::move(at->second.pieces));
    at = sessions_.erase(at);
  }
  return taken;
}

void Worker::forget_piece(const protocol::Handle& piece) {
  std::shared_ptr<Piece> gone;  // when the lock is free
  const std::lock_guard lock(mutex_);
  const auto session = sessions_.find(piece.session);
  if (session == sessions_.end()) return;
  Pieces& pieces = session->second.pieces;
  const auto at = pieces.find(piece.number);
  if (at == pieces.end()) return;
  gone = std::move(at->second);
  pieces.erase(at);
}

void Worker::close_session(std::string_view session) {
  Pieces gone;
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(session);
    if (at == sessions_.end()) return;
    gone.swap(at->second.pieces);
    sessions_.erase(at);
  }
  for (const auto& [number, piece] : gone) piece->session.close();
}

void Worker::reset(const protocol::ResetRequest& request) {
  ResourceManager& resources = *state_of(request.owner)->full;
  if (request.containers.empty()) return resources.clear();
  for (const std::string& container : request.containers) resources.remove_all(container, "");
}

std::shared_ptr<Worker::Piece> Worker::piece(const std::string& session, uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(session);
  if (at != sessions_.end()) {
    at->second.used = std::chrono::steady_clock::now();
    const Pieces& pieces = at->second.pieces;
    if (const auto found = pieces.find(number); found != pieces.end()) return found->second;
  }
  throw error_of(Code::kAborted,
                 {treenail::to_text(options_.task), " has no piece ", number, " of session \"",
                  session, "\": the session was closed, or the task was restarted"});
}

void Worker::drop_idle(uint64_t number) {
  std::shared_ptr<Step> gone;
  const std::lock_guard lock(mutex_);
  const auto at = steps_.find(number);
  if (at == steps_.end() || at->second->users > 0 || !at->second->rendezvous.idle()) return;
  gone = std::move(at->second);
  steps_.erase(at);
}

void Worker::check_incarnation(uint64_t wanted) const {
  if (wanted == 0 || wanted == incarnation_) return;
  throw error_of(Code::kAborted,
                 {treenail::to_text(options_.task),
                  " was restarted: its variables are not those that this session knows. Open a new "
                  "session, and restore them from a checkpoint"});
}

std::vector<Tensor> Worker::run_piece(const protocol::RunRequest& request,
                                      std::span<const Tensor> feeds, const RunOptions& options,
                                      RunMetadata& metadata) {
  check_incarnation(request.incarnation);
  if (request.in_parts) return run_part(request, feeds, options);
  const std::shared_ptr<Piece> found = piece(request.session, request.number);
  const MemoryScope memory(found->account.get());
  std::vector<Tensor> given(feeds.begin(), feeds.end());
  for (Tensor& feed : given) feed = charged(std::move(feed), *found->account);
  StepUse use(*this, request.step);
  const auto peer_of = [this](std::string_view task) -> const RpcPeer& { return peer(task); };
  StepExchange exchange(request, use.rendezvous(), *neighbours_, found->receives, peer_of);
  RunOptions run_options = options;
  run_options.exchange = &exchange;
  run_options.timeout_ms = request.timeout_ms;
  run_options.most_bytes = options_.limits.memory_bytes;
  try {
    std::vector<Tensor> values =
        found->session.run(found->signature, given, run_options, &metadata);
    name_by_task(metadata, options_.task);
    return values;
  } catch (...) {
    use.rendezvous().abort(std::current_exception());
    throw;
  }
}

void Worker::receive(const protocol::ReceiveRequest& request, Rendezvous::Receiver& receiver) {
  StepUse(*this, request.step).rendezvous().receive(request.key, receiver);
}

bool Worker::forget(uint64_t step, const Rendezvous::Receiver& receiver) {
  return StepUse(*this, step).rendezvous().forget(receiver);
}

void Worker::send_again(const protocol::ReceiveRequest& request, Tensor value) {
  StepUse(*this, request.step).rendezvous().send(request.key, std::move(value));
}

void Worker::give_up_step(uint64_t step) {
  StepUse(*this, step)
      .rendezvous()
      .abort(std::make_exception_ptr(
          cancelled("the step was given up, since another task of it has failed")));
}

const RpcPeer& Worker::peer(const TaskName& task) {
  const std::string& address = options_.cluster.address(task);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<RpcPeer>& known = peers_[task];
  if (known == nullptr) {
    known =
        std::make_unique<RpcPeer>(concat("the task ", treenail::to_text(task), " (", address, ")"),
                                  address, options_.patience, options_.credentials);
  }
  return *known;
}

const RpcPeer& Worker::peer(std::string_view task_text) {
  return peer(task_of(parse_device_name(task_text)));
}

}  // namespace treenail
