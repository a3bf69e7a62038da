// SPDX-License-Identifier: Apache-2.0
// A master: sessions of clients over all tasks of the cluster. A client gives it the part of its
// graph that a run needs; the master places it over the tasks' devices, cuts it into pieces, gives
// each worker its own, and has them run step by step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/distributed/callers.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/worker.h"

namespace treenail {

struct PlanPiece;  // master_plan.h
struct StepCalls;

class Master {
 public:
  // `own`: the worker of the same process, which takes part without messages. Outlives it.
  // `secret`: by which clients of this process are known.
  Master(Worker& own, std::string secret) : own_(own), secret_(std::move(secret)) {}
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  // `caller`: whose session it is, which nobody else can use. Of others it is as if it were not
  // there.

  // Waits until all tasks that it is to know are there. Errors: Cancelled, by poll_interrupt();
  // InvalidArgument for a filter that is no name of a device; ResourceExhausted where he has too
  // many.
  protocol::SessionOpened open_session(const Caller& caller, const protocol::Settings& settings);
  // Its number. Errors: Aborted for a session that is not there; as placing and cutting a graph
  // throw; Unavailable; ResourceExhausted.
  uint64_t make_plan(const Caller& caller, const protocol::Program& program);
  void forget_plan(const Caller& caller, const protocol::Handle& plan);
  // Errors: what a piece throws, the first of them that does not follow from another; Unavailable
  // and Aborted, naming the task; NotFound.
  std::vector<Tensor> run(const Caller& caller, const protocol::RunRequest& request,
                          std::span<const Tensor> feeds, const RunOptions& options,
                          RunMetadata& metadata);
  // Of `request` the plan; the number of the run in parts. Errors: as run(); ResourceExhausted.
  uint64_t begin_parts(const Caller& caller, const protocol::RunRequest& request,
                       const RunOptions& options);
  // Where a feed is missing nothing is done but to say so in `reply`; any error ends the run.
  // Errors: as run(); InvalidArgument; FailedPrecondition where another part is on its way.
  std::vector<Tensor> run_part(const Caller& caller, const protocol::RunRequest& part,
                               std::span<const Tensor> feeds, const RunOptions& options,
                               protocol::RunReply& reply);
  void end_parts(const Caller& caller, const protocol::Handle& run);
  void close_session(const Caller& caller, const std::string& session);
  std::vector<std::string> devices();
  // His state at all tasks, and all his sessions end.
  void reset(const Caller& caller, const protocol::ResetRequest& request);

  struct Plan;
  struct OpenRun;

 private:
  struct Session;
  class Run;
  class Planning;

  std::shared_ptr<Session> session(const Caller& caller, const std::string& handle);
  void add_session(const std::string& handle, std::shared_ptr<Session> made);
  void close(const std::string& handle, const Session& session);
  // Of the own task, and of the others that a filter covers, or of all where there is none.
  std::vector<protocol::TaskStatus> statuses(const std::vector<std::string>& filters = {});
  // By node id, the number in the session's devices; what a model has chosen is what nodes ask for
  // from here on.
  static std::vector<int32_t> placed(const Session& session, Graph& graph,
                                     std::span<const Output> fetches);
  // Its pieces, at their tasks.
  void forget(const std::string& session, const Plan& plan);
  std::unique_ptr<Plan> planned(const Session& session, const protocol::Program& program);
  std::shared_ptr<Plan> plan_of(Session& session, uint64_t number);
  int64_t within_limit(int64_t timeout_ms) const;
  std::vector<Tensor> run_step(const Session& session, const StepCalls& step,
                               const RunOptions& options, RunMetadata& metadata);
  // Runs in parts: master_parts.cc.
  protocol::PieceNeeds piece_needs(const PlanPiece& piece, const std::string& session,
                                   const RunOptions& options);
  uint64_t add_open_run(Session& session, std::shared_ptr<OpenRun> made);
  std::vector<Tensor> run_part_in_pieces(const Session& session, OpenRun& run,
                                         const protocol::RunRequest& part,
                                         std::span<const Tensor> feeds, const RunOptions& options);
  void forget_parts(Session& session, const std::string& handle, uint64_t number);
  void end_parts(const std::string& session, const OpenRun& run);
  uint64_t give_piece(const Session& session, const TaskName& task, const protocol::Program& piece);

  Worker& own_;
  const std::string secret_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<Session>> sessions_;
};

}  // namespace treenail
