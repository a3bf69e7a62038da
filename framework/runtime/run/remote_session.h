// SPDX-License-Identifier: Apache-2.0
// A session that runs what it is asked for at a server. The runtime knows no more of it: who
// reaches the server is in distributed/.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/runtime/run/session.h"

namespace treenail {

class RemoteSession {
 public:
  virtual ~RemoteSession();
  // As Session::run().
  virtual std::vector<Tensor> run(Session::Signature& signature, std::span<const Tensor> feeds,
                                  const RunOptions& options, RunMetadata* metadata) = 0;
  // As the Session's.
  virtual std::string partial_run_setup(const std::shared_ptr<Session::Signature>& signature,
                                        const RunOptions& options) = 0;
  virtual std::vector<Tensor> partial_run(const std::string& handle, const Session::Part& part,
                                          const RunOptions& options) = 0;
  virtual void end_partial_run(const std::string& handle) = 0;
  virtual std::vector<std::string> devices() const = 0;
  // What the tasks tell of themselves (placement/task_figures.h).
  virtual std::string figures() const { return {}; }
  // Later runs are refused.
  virtual void close() = 0;
};

// What a RemoteSession keeps with a signature.
class RemotePlan {
 public:
  virtual ~RemotePlan();
};

}  // namespace treenail
