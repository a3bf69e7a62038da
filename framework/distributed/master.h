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
#include <vector>

#include "framework/distributed/protocol.h"
#include "framework/distributed/worker.h"

namespace treenail {

class Master {
 public:
  // `own`: the worker of the same process, which takes part without messages. Outlives it.
  explicit Master(Worker& own) : own_(own) {}
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  // Waits until all tasks of the cluster are there. Errors: Cancelled, by poll_interrupt().
  protocol::SessionOpened open_session(const protocol::Settings& settings);
  // Its number. Errors: NotFound for a session that is not there; as placing and cutting a graph
  // throw; Unavailable.
  uint64_t make_plan(const protocol::Program& program);
  void forget_plan(const protocol::Handle& plan);
  // Errors: what a piece throws, the first of them that does not follow from another; Unavailable
  // and Aborted, naming the task; NotFound.
  std::vector<Tensor> run(const protocol::RunRequest& request, std::span<const Tensor> feeds,
                          const RunOptions& options, RunMetadata& metadata);
  void close_session(const std::string& session);
  std::vector<std::string> devices();
  // Of all tasks, and all sessions end.
  void reset(const protocol::ResetRequest& request);

 private:
  struct Session;
  struct Plan;
  class Run;

  std::shared_ptr<Session> session(const std::string& handle);
  std::vector<protocol::TaskStatus> statuses();
  std::unique_ptr<Plan> placed_plan(const Session& session, const protocol::Program& program);
  uint64_t give_piece(const TaskName& task, const protocol::Program& piece);

  Worker& own_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<Session>> sessions_;
};

}  // namespace treenail
