// SPDX-License-Identifier: Apache-2.0
// Reading control groups from /proc and their mounted trees. Both versions may be mounted at once;
// in a container the path in /proc/self/cgroup may be the host's, of which only a part, or another
// name, is visible.
#include "framework/base/system_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace treenail {
namespace {

std::string read_text(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return text;
  char block[4096];
  for (size_t got; (got = std::fread(block, 1, sizeof block, file)) > 0;) text.append(block, got);
  std::fclose(file);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool holds(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> parts = split(list, ',');
  return std::find(parts.begin(), parts.end(), word) != parts.end();
}

struct Mount {
  std::string root;   // which part of the hierarchy is mounted
  std::string point;  // where
};

// The mount of `controller` (v1), or of the unified hierarchy when `controller` is "".
bool find_mount(std::string_view mountinfo, std::string_view controller, Mount* mount) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> left = split(line.substr(0, dash), ' ');
    const std::vector<std::string_view> right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const bool fits = controller.empty() ? right[0] == "cgroup2"
                                         : right[0] == "cgroup" && holds(right[2], controller);
    if (!fits) continue;
    mount->root = left[3];
    mount->point = left[4];
    return true;
  }
  return false;
}

// This process's path in the hierarchy of `controller`, or in the unified one when it is "".
bool find_path(std::string_view cgroups, std::string_view controller, std::string* path) {
  for (const std::string_view line : split(cgroups, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : holds(controllers, controller)) {
      *path = line.substr(second + 1);
      return true;
    }
  }
  return false;
}

// The directories from the process's group up to the mount point, each a control group that binds
// it.
std::vector<std::string> group_directories(const std::string& root, std::string_view controller) {
  Mount mount;
  std::string path;
  if (!find_mount(read_text(root + "/proc/self/mountinfo"), controller, &mount) ||
      !find_path(read_text(root + "/proc/self/cgroup"), controller, &path)) {
    return {};
  }
  if (mount.root != "/") {
    const bool below = path.compare(0, mount.root.size(), mount.root) == 0 &&
                       (path.size() == mount.root.size() || path[mount.root.size()] == '/');
    path = below ? path.substr(mount.root.size()) : "";
  }
  std::vector<std::string> directories;
  while (!path.empty() && path != "/") {
    directories.push_back(root + mount.point + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  directories.push_back(root + mount.point);
  return directories;
}

// A number at the beginning of `text`; -1 when there is none ("max", absent file).
double leading_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? -1 : value;
}

void lower_cpus(CgroupLimits* limits, double quota, double period) {
  if (quota <= 0 || period <= 0) return;
  const double cpus = quota / period;
  if (limits->cpus == 0 || cpus < limits->cpus) limits->cpus = cpus;
}

// The names of a memory group's files in one version of control groups.
struct MemoryFiles {
  const char* controller;
  const char* limit;
  const char* in_use;
  const char* prefix;  // of the lines of memory.stat that count the groups below, too
};

constexpr MemoryFiles kMemoryFiles[] = {
    {"", "/memory.max", "/memory.current", ""},
    {"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"}};

// 0: no limit.
int64_t memory_limit(const std::string& directory, const MemoryFiles& files) {
  constexpr double kNoLimit = 4e18;  // v1 writes the largest multiple of the page size for "none"
  const double bytes = leading_number(read_text(directory + files.limit));
  return bytes <= 0 || bytes >= kNoLimit ? 0 : static_cast<int64_t>(bytes);
}

// Pages of files, which the kernel drops before it kills. Those of shared memory are not among
// them.
double cached_bytes(const std::string& directory, const MemoryFiles& files) {
  const std::string prefix = files.prefix;
  const std::string figures = read_text(directory + "/memory.stat");
  double sum = 0;
  for (const std::string_view line : split(figures, '\n')) {
    const std::vector<std::string_view> words = split(line, ' ');
    if (words.size() != 2) continue;
    if (words[0] == prefix + "inactive_file" || words[0] == prefix + "active_file")
      sum += std::max(0.0, leading_number(std::string(words[1])));
  }
  return sum;
}

int64_t memory_left(const std::string& directory, const MemoryFiles& files, int64_t limit) {
  const double in_use = std::max(0.0, leading_number(read_text(directory + files.in_use)));
  const double left = static_cast<double>(limit) - in_use + cached_bytes(directory, files);
  return static_cast<int64_t>(std::clamp(left, 0.0, static_cast<double>(limit)));
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  for (const std::string& directory : group_directories(root, "")) {
    const std::string cpu = read_text(directory + "/cpu.max");  // "200000 100000" or "max 100000"
    const size_t space = cpu.find(' ');
    if (space != std::string::npos) {
      lower_cpus(&limits, leading_number(cpu), leading_number(cpu.substr(space + 1)));
    }
  }
  for (const std::string& directory : group_directories(root, "cpu")) {
    lower_cpus(&limits, leading_number(read_text(directory + "/cpu.cfs_quota_us")),
               leading_number(read_text(directory + "/cpu.cfs_period_us")));
  }
  for (const MemoryFiles& files : kMemoryFiles) {
    for (const std::string& directory : group_directories(root, files.controller)) {
      const int64_t limit = memory_limit(directory, files);
      const bool lower = limits.memory_bytes == 0 || limit < limits.memory_bytes;
      if (limit > 0 && lower) limits.memory_bytes = limit;
    }
  }
  return limits;
}

int64_t cgroup_memory_left(const std::string& root) {
  int64_t left = std::numeric_limits<int64_t>::max();
  for (const MemoryFiles& files : kMemoryFiles) {
    for (const std::string& directory : group_directories(root, files.controller)) {
      const int64_t limit = memory_limit(directory, files);
      if (limit > 0) left = std::min(left, memory_left(directory, files, limit));
    }
  }
  return left;
}

int affinity_cpus() {
  // The kernel refuses masks smaller than its own, so the size is grown until it answers.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(size, set);
    const int result = ::sched_getaffinity(0, size, set);
    const int reason = errno;
    const int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (result == 0) return std::max(count, 1);
    if (reason != EINVAL) break;
  }
  return 1;
}

int64_t physical_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<int64_t>(pages) * page : 0;
}

}  // namespace treenail
