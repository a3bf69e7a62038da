// SPDX-License-Identifier: Apache-2.0
// What is told of one node of a run (RunMetadata::nodes). How it is found: profile.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace treenail {

// Of one kernel: an op of the user's graph, or several that were fused.
struct NodeStats {
  std::string name;  // of the node in the user's graph; of a group its last
  std::string op;
  std::vector<std::pair<std::string, std::string>> fused;  // name, op of what else it computes
  std::string device;
  // Since the run began. On a device with a queue: when the node was handed to it.
  int64_t start_ns = 0, end_ns = 0;
  int64_t thread = 0;           // the system's number
  int64_t bytes_allocated = 0;  // its outputs, but those written over an input, and its scratch
  int64_t bytes_in_use = 0;     // of its device's memory in the whole process, when it had ended
  double flops = 0;             // by the ops' own counts (OpDef::flops_fn); 0: unknown
};

}  // namespace treenail
