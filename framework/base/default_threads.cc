// SPDX-License-Identifier: Apache-2.0
// How many threads the pool has when nobody says: what this process may use of the machine.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "framework/base/environment.h"
#include "framework/base/pool_state.h"
#include "framework/base/system_limits.h"
#include "framework/base/thread_pool.h"

namespace treenail {

int default_num_threads(const char** origin) {
  const char* unused = nullptr;
  const char*& by = origin != nullptr ? *origin : unused;
  by = "TREENAIL_NUM_THREADS";
  if (const auto asked = env_int("TREENAIL_NUM_THREADS", 1, pool_detail::kMaxThreads)) {
    return static_cast<int>(*asked);
  }
  int threads = affinity_cpus();
  by = "the affinity mask";
  const auto at_most = [&](double limit, const char* name) {
    if (limit >= threads) return;
    threads = static_cast<int>(limit);
    by = name;
  };
  const double quota = read_cgroup_limits().cpus;
  if (quota > 0) at_most(std::ceil(quota), "the control group's quota");
  // Slurm's variable is not ours: what is no number there is ignored.
  if (const auto slurm = env_text("SLURM_CPUS_PER_TASK")) {
    const long granted = std::strtol(slurm->c_str(), nullptr, 10);
    if (granted >= 1) at_most(static_cast<double>(granted), "SLURM_CPUS_PER_TASK");
  }
  return std::clamp(threads, 1, pool_detail::kMaxThreads);
}

}  // namespace treenail
