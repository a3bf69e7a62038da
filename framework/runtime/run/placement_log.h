// SPDX-License-Identifier: Apache-2.0
// Where operations run, as a table on standard error: each operation once in a session, when a
// topology first has it.
#pragma once

#include <mutex>
#include <string>
#include <unordered_set>

#include "framework/base/fork.h"
#include "framework/runtime/plan/topology.h"

namespace treenail {

class PlacementLog {
 public:
  // `task`: what its devices go by, as SessionOptions.
  void write(const Topology& topology, const DeviceName& task);

 private:
  ForkMutex mutex_;
  std::unordered_set<std::string> written_;  // original names
};

}  // namespace treenail
