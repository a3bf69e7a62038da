// SPDX-License-Identifier: Apache-2.0
// What the plugin exports.
#include "build_info.h"
#include "framework/runtime/kernel/device_library.h"
#include "kernels/cuda/driver/device.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/chain_host.h"

namespace treenail::cuda {
namespace {

std::vector<KernelRegistration> all_kernels() {
  static_cast<void>(KernelRegistry::instance());  // families take over what the host's registered
  KernelRegistrations registrations;
  register_all(registrations);
  return registrations.take();
}

constexpr DeviceLibrary kLibrary = {kDeviceLibraryAbi, build_info::kBuildId, kKind,
                                    &make_devices,     &all_kernels,         kChainFuser};

}  // namespace
}  // namespace treenail::cuda

extern "C" __attribute__((visibility("default"))) const treenail::DeviceLibrary*
treenail_device_library() {
  return &treenail::cuda::kLibrary;
}
