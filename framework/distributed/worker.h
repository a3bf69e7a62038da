// SPDX-License-Identifier: Apache-2.0
// A worker: the devices and the state of one task, the pieces of graphs that masters have given it,
// and the steps in which it runs them. Who reaches it from other processes: service.h.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/distributed/access.h"
#include "framework/distributed/cluster.h"
#include "framework/distributed/credentials.h"
#include "framework/distributed/limits.h"
#include "framework/distributed/mpi_launch.h"
#include "framework/distributed/neighbours.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rendezvous.h"
#include "framework/distributed/rpc.h"
#include "framework/runtime/run/session.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {

class Worker final : public ValueSource {
 public:
  struct Options {
    ClusterSpec cluster;
    TaskName task;
    std::map<std::string, int> device_count;  // as SessionOptions
    RpcPatience patience;
    std::shared_ptr<const Credentials> credentials;  // for calls of other tasks; null: plain text
    AccessRules access;
    Limits limits;
    MpiChoice mpi;
  };
  // Whether those who give it a piece are of this very process, which may do anything, or others.
  enum class Trust : uint8_t { kOthers, kOwnProcess };
  // Errors: NotFound for a task that the cluster does not have; as AccessCheck.
  explicit Worker(Options options);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const TaskName& task() const { return options_.task; }
  const ClusterSpec& cluster() const { return options_.cluster; }
  const Limits& limits() const { return options_.limits; }
  // `question`: of a value that it may be sending over MPI.
  protocol::TaskStatus status(const protocol::ReceiveRequest& question = {}) const;
  // By owner, of those who have had something here.
  std::map<std::string, int64_t> held_bytes();

  // Its number. Errors: as graph_from_bytes, and for names that the graph does not have;
  // PermissionDenied for what others may not have it run.
  uint64_t register_piece(const protocol::Program& program, Trust trust);
  // Where there is such a piece.
  void forget_piece(const protocol::Handle& piece);
  void close_session(std::string_view session);
  // The owner's state in these containers goes, or in all.
  void reset(const protocol::ResetRequest& request);

  // What the piece's fetches, targets and sends wait for in a run in parts. Errors: as run_piece().
  protocol::PieceNeeds part_needs(const protocol::Handle& piece, const RunOptions& options);
  // Of `request` the session, the piece and the step. Where there is such a run in parts.
  void end_run(const protocol::RunRequest& request);

  // Runs the piece's part of the step, or a part of that, on this thread. Errors: as Session::run;
  // NotFound for a piece that is not there; Aborted where `request` is for a worker that was here
  // before.
  std::vector<Tensor> run_piece(const protocol::RunRequest& request, std::span<const Tensor> feeds,
                                const RunOptions& options, RunMetadata& metadata);
  void receive(const protocol::ReceiveRequest& request, Rendezvous::Receiver& receiver) override;
  bool forget(uint64_t step, const Rendezvous::Receiver& receiver) override;
  void send_again(const protocol::ReceiveRequest& request, Tensor value) override;
  // Of a step that has failed elsewhere: what it has left here goes.
  void give_up_step(uint64_t step);

  // Another task of the cluster, as this one calls it. Errors: NotFound, Unimplemented.
  const RpcPeer& peer(const TaskName& task);
  const RpcPeer& peer(std::string_view task_text);
  void later(std::shared_ptr<LaterWork> work) { neighbours_->later(std::move(work)); }
  // Null: values do not go over MPI.
  MpiValues* mpi() const { return options_.mpi.values.get(); }
  // How values come from the tasks that this one has received from.
  std::vector<Transport> transports() const { return neighbours_->transports(); }

 private:
  struct Piece;
  struct State;
  struct Step;
  class StepUse;
  class PartExchange;

  using Pieces = std::map<uint64_t, std::shared_ptr<Piece>>;
  struct SessionPieces {
    Pieces pieces;
    std::chrono::steady_clock::time_point used;
  };

  std::shared_ptr<State> state_of(const std::string& owner);
  // What sessions have left whose masters ended without a word. With the mutex.
  std::vector<Pieces> take_unused();
  std::shared_ptr<Piece> piece(const std::string& session, uint64_t number);
  void drop_idle(uint64_t number);
  // Runs in parts: worker_parts.cc.
  std::vector<Tensor> run_part(const protocol::RunRequest& request, std::span<const Tensor> feeds,
                               const RunOptions& options);
  std::string open_run(Piece& piece, const protocol::RunRequest& request,
                       const RunOptions& options);
  void end_run(Piece& piece, uint64_t step);
  void end_runs();
  void check_incarnation(uint64_t wanted) const;

  const Options options_;
  const uint64_t incarnation_;
  const AccessCheck access_;
  std::vector<std::string> devices_;
  std::string figures_;  // as TaskStatus has them

  std::mutex mutex_;                                      // guards what follows
  std::map<std::string, std::shared_ptr<State>> states_;  // by owner
  uint64_t next_piece_ = 0;
  std::map<std::string, SessionPieces, std::less<>> sessions_;
  std::map<uint64_t, std::shared_ptr<Step>> steps_;
  std::map<TaskName, std::unique_ptr<RpcPeer>> peers_;
  std::unique_ptr<Neighbours> neighbours_;  // uses what stands before
};

}  // namespace treenail
