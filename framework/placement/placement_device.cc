// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placement_device.h"

#include <map>
#include <tuple>

namespace treenail {

bool same_task(const DeviceName& a, const DeviceName& b) {
  return a.job == b.job && a.replica == b.replica && a.task == b.task;
}

std::vector<PlacementDevice> placement_devices(std::span<const DeviceName> names) {
  std::map<std::tuple<std::string, int, int>, int32_t> host_memories;  // by task
  std::vector<PlacementDevice> devices;
  devices.reserve(names.size());
  for (const DeviceName& name : names) {
    const auto number = static_cast<int32_t>(devices.size());
    PlacementDevice& device = devices.emplace_back(PlacementDevice{name, number});
    if (!device.is_host()) continue;
    const auto task = std::tuple(name.job, name.replica.value_or(0), name.task.value_or(0));
    device.memory = host_memories.try_emplace(task, number).first->second;
  }
  return devices;
}

std::vector<PlacementDevice> placement_devices(std::span<Device* const> devices,
                                               const DeviceName& task) {
  std::vector<DeviceName> names;
  names.reserve(devices.size());
  for (const Device* device : devices) names.push_back(merge_device_names(device->name(), task));
  return placement_devices(names);
}

}  // namespace treenail
