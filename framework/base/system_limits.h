// SPDX-License-Identifier: Apache-2.0
// What the system grants this process: CPUs by affinity mask and cgroup quota, memory by cgroup
// limit and RAM. Containers and batch systems set these; asking for more means throttling or being
// killed.
#pragma once

#include <cstdint>
#include <string>

namespace treenail {

struct CgroupLimits {
  double cpus = 0;           // CPU-seconds per second; 0: no quota
  int64_t memory_bytes = 0;  // 0: no limit
};

// The smallest limits among this process's control groups (v1 and v2) and their visible ancestors.
// `root` stands before every path read, for tests. Whatever cannot be read counts as no limit.
CgroupLimits read_cgroup_limits(const std::string& root = "");

// Bytes that the same groups may still take before one of them reaches its limit and its processes
// are killed; pages of files, which the kernel drops first, count as free. The largest number where
// nothing limits. Reads some ten small files: not for a path that has to be fast.
int64_t cgroup_memory_left(const std::string& root = "");

// CPUs in the affinity mask of the calling thread; at least 1.
int affinity_cpus();
// Bytes of RAM; 0 when the system does not say.
int64_t physical_memory();

}  // namespace treenail
