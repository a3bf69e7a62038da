// SPDX-License-Identifier: Apache-2.0
// Libraries that bring a kind of device with its kernels. They are of one build with libtreenail,
// for devices and kernels are C++ objects; plugins for any build: capi/include/treenail/plugin.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/device/device.h"
#include "framework/runtime/kernel/kernel_fusion.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail {

// What such a library exports as `const treenail::DeviceLibrary* treenail_device_library()`
// (extern "C").
struct DeviceLibrary {
  uint32_t abi;          // kDeviceLibraryAbi
  const char* build_id;  // of the libtreenail it was built with: another build is refused
  const char* kind;      // of all its devices: "GPU"
  std::vector<std::unique_ptr<Device>> (*make_devices)();
  std::vector<KernelRegistration> (*kernels)();
  Fuser fuser = {};  // of all its devices; without functions nothing is fused there
};
inline constexpr uint32_t kDeviceLibraryAbi = 1;

// Opens the library at `path`; sessions opened afterwards have its devices. One that was opened
// before is left alone. Errors: NotFound (no such file), FailedPrecondition (cannot be loaded, no
// device library, of another build), AlreadyExists (devices or kernels that are there), whatever
// making the devices throws; nothing of it stays then.
void load_device_library(const std::string& path);

}  // namespace treenail
