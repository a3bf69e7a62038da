// SPDX-License-Identifier: Apache-2.0
// Runs in parts of a session at a server, as their client has them: what a part may name is checked
// here, what can be computed so far is the master's to say.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/distributed/client_remote.h"
#include "framework/runtime/run/part_names.h"
#include "framework/runtime/run/session.h"

namespace treenail {

class ClientParts {
 public:
  ClientParts(std::shared_ptr<const Remote> remote, const Graph& graph)
      : remote_(std::move(remote)), graph_(graph) {}

  // As the Session's functions. `plan`: one for runs in parts.
  std::string begin(std::shared_ptr<Session::Signature> signature,
                    std::shared_ptr<const ClientPlan> plan, const RunOptions& options);
  std::vector<Tensor> go_on(const std::string& handle, const Session::Part& part,
                            const RunOptions& options);
  void end(const std::string& handle);

 private:
  struct Open;
  static protocol::RunRequest request_of(const Open& open, const PartNames::Request& wanted);
  // Errors: DataLoss.
  void check_reply(const Open& open, const PartNames::Request& wanted,
                   const protocol::RunReply& did, size_t values) const;
  // Errors: InvalidArgument, always.
  [[noreturn]] static void refuse(const Open& open, const PartNames::Request& wanted,
                                  const protocol::RunReply& did);
  std::shared_ptr<Open> take(const std::string& handle);

  const std::shared_ptr<const Remote> remote_;
  const Graph& graph_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<Open>> open_;
};

}  // namespace treenail
