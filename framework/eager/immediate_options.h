// SPDX-License-Identifier: Apache-2.0
// What immediate execution may use: the devices of the process, and how strictly it goes by them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/device/device.h"

namespace treenail {

// What becomes of an input that lies in another memory than the one where the call needs it.
// Scalars are copied whatever is said: a program's numbers are made on the host.
enum class DevicePolicy : uint8_t { kExplicit, kWarn, kSilent, kSilentForInt32 };

struct ImmediateOptions {
  // As in session_devices(): no session's, but the process's.
  std::map<std::string, int> device_count;
  // A request that nothing here meets, and an op that its device has no kernel for, go to the CPU.
  bool allow_soft_placement = false;
  DevicePolicy policy = DevicePolicy::kSilent;
  friend bool operator==(const ImmediateOptions&, const ImmediateOptions&) = default;
};

// The process's. Options once got stay as they are while they are held.
std::shared_ptr<const ImmediateOptions> immediate_options();
void set_immediate_options(ImmediateOptions options);

// The device that the text asks for; null: a CPU, which is all the same to a call, since they share
// memory and threads. Errors: InvalidArgument for what is no device name, and for a device that is
// not there, naming those that are.
Device* requested_device(std::string_view request);

}  // namespace treenail
