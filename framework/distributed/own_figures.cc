// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/own_figures.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "framework/device/allocator.h"
#include "framework/distributed/neighbour_packets.h"

namespace treenail {

std::string kernel_and_user() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return concat(boot.empty() ? "unknown" : boot, "/", ::getuid());
}

TaskFigures own_figures(std::span<const std::string> devices, int64_t most_bytes) {
  TaskFigures figures;
  figures.cores = default_num_threads();
  figures.host_cores = std::max<int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN));
  figures.memory_bytes = Allocator::host().limit();
  if (most_bytes > 0) figures.memory_bytes = std::min(figures.memory_bytes, most_bytes);
  figures.cpus = std::ranges::count_if(devices, [](const std::string& device) {
    return parse_device_name(device).type == Device::kHostKind;
  });
  figures.host = kernel_and_user();
  if (const std::string directory = neighbour_directory(); !directory.empty())
    figures.lends = concat(figures.host, directory);
  return figures;
}

}  // namespace treenail
