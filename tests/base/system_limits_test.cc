// SPDX-License-Identifier: Apache-2.0
// Control-group limits, read from trees as systems of either version, containers and nested groups
// show them.
#include "framework/base/system_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

class SystemLimits : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  void be_in_job_scope() {  // of version two
    write("/proc/self/cgroup", "0::/user.slice/job.scope\n");
    write("/proc/self/mountinfo",
          "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  const test::TemporaryDirectory directory_;
  const std::string& root_ = directory_.path();
};

TEST_F(SystemLimits, NothingReadableIsNoLimit) {
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.cpus, 0);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST_F(SystemLimits, VersionTwoTakesTheSmallestOnTheWayUp) {
  be_in_job_scope();
  write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/user.slice/job.scope/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 1073741824);
}

TEST_F(SystemLimits, WhatIsLeftIsThatOfTheFullestGroupOnTheWayUp) {
  EXPECT_EQ(cgroup_memory_left(root_), std::numeric_limits<int64_t>::max());
  be_in_job_scope();
  const std::string slice = "/sys/fs/cgroup/user.slice";
  write(slice + "/job.scope/memory.max", "1000000\n");
  write(slice + "/job.scope/memory.current", "700000\n");
  EXPECT_EQ(cgroup_memory_left(root_), 300000);
  write(slice + "/job.scope/memory.stat", "anon 500000\ninactive_file 120000\nactive_file 30000\n");
  EXPECT_EQ(cgroup_memory_left(root_), 450000);
  write(slice + "/memory.max", "2000000\n");
  write(slice + "/memory.current", "1900000\n");
  EXPECT_EQ(cgroup_memory_left(root_), 100000);
  write(slice + "/memory.current", "2100000\n");  // for a moment, while pages are given back
  EXPECT_EQ(cgroup_memory_left(root_), 0);
}

TEST_F(SystemLimits, WhatIsLeftInVersionOne) {
  write("/proc/self/cgroup", "5:memory:/job\n");
  write("/proc/self/mountinfo",
        "41 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const std::string job = "/sys/fs/cgroup/memory/job";
  write(job + "/memory.limit_in_bytes", "9223372036854771712\n");
  write(job + "/memory.usage_in_bytes", "700000\n");
  EXPECT_EQ(cgroup_memory_left(root_), std::numeric_limits<int64_t>::max());
  write(job + "/memory.limit_in_bytes", "1000000\n");
  write(job + "/memory.stat",
        "inactive_file 7\ntotal_inactive_file 20000\ntotal_active_file 30000\n");
  EXPECT_EQ(cgroup_memory_left(root_), 350000);
}

TEST_F(SystemLimits, VersionOneInAContainer) {
  // The path is the host's; of the hierarchy only this container's part is mounted.
  write("/proc/self/cgroup",
        "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n");
  write("/proc/self/mountinfo",
        "40 30 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro shared:9 - cgroup cgroup "
        "rw,cpu,cpuacct\n"
        "41 30 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 2.5);
  EXPECT_EQ(limits.memory_bytes, 536870912);
}

TEST_F(SystemLimits, VersionOneWithoutLimits) {
  write("/proc/self/cgroup", "5:memory:/\n4:cpu,cpuacct:/\n");
  write("/proc/self/mountinfo",
        "40 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "41 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.cpus, 0);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST_F(SystemLimits, BrokenFilesAreNoLimit) {
  write("/proc/self/cgroup", "0::\n:::\nrubbish\n");
  write("/proc/self/mountinfo", "- \n a - \n30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/cpu.max", "100000\n");
  write("/sys/fs/cgroup/memory.max", "-5\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.cpus, 0);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST(DefaultThreads, FollowAffinityEnvironmentAndSlurm) {
  ::unsetenv("TREENAIL_NUM_THREADS");
  ::unsetenv("SLURM_CPUS_PER_TASK");
  const char* origin = nullptr;
  const int plain = default_num_threads(&origin);
  EXPECT_TRUE(std::string_view(origin) == "the affinity mask" ||
              std::string_view(origin) == "the control group's quota");
  EXPECT_GE(plain, 1);
  EXPECT_LE(plain, affinity_cpus());
  ::setenv("SLURM_CPUS_PER_TASK", "1", 1);
  EXPECT_EQ(default_num_threads(&origin), 1);
  EXPECT_TRUE(plain == 1 || std::string_view(origin) == "SLURM_CPUS_PER_TASK");
  ::setenv("SLURM_CPUS_PER_TASK", "rubbish", 1);
  EXPECT_EQ(default_num_threads(), plain);
  ::setenv("TREENAIL_NUM_THREADS", "7", 1);
  EXPECT_EQ(default_num_threads(&origin), 7);
  EXPECT_STREQ(origin, "TREENAIL_NUM_THREADS");
  ::setenv("TREENAIL_NUM_THREADS", "0", 1);
  EXPECT_THROW(default_num_threads(), Error);
  ::unsetenv("TREENAIL_NUM_THREADS");
  ::unsetenv("SLURM_CPUS_PER_TASK");
}

TEST(PhysicalMemory, IsKnown) { EXPECT_GT(physical_memory(), int64_t{1} << 20); }

}  // namespace
}  // namespace treenail
