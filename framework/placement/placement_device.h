// SPDX-License-Identifier: Apache-2.0
// What placement knows of a device: a description, so that a graph may be placed over devices that
// are not of this process, or that exist nowhere. The devices themselves: device/device.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/device/device.h"

namespace treenail {

struct PlacementDevice {
  DeviceName name;  // in full
  // Devices with the same number share one memory, as the CPUs of one task do: values need no copy
  // between them, and each may work on the state of the other.
  int32_t memory = 0;

  const std::string& kind() const { return name.type; }
  bool is_host() const { return name.type == Device::kHostKind; }
};

// Of full names, which tell what shares memory: the CPUs of one task, and nothing else. A memory
// has the number of its first device.
std::vector<PlacementDevice> placement_devices(std::span<const DeviceName> names);
// `task`: the job and task that they go by, where it says any, instead of their own.
std::vector<PlacementDevice> placement_devices(std::span<Device* const> devices,
                                               const DeviceName& task = {});

// Whether both are devices of one process.
bool same_task(const DeviceName& a, const DeviceName& b);

}  // namespace treenail
