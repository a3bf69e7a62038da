// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/device_library.h"

#include <string_view>
#include <utility>

#include "build_info.h"
#include "framework/base/error.h"
#include "framework/runtime/kernel/plugin.h"

namespace treenail {
namespace {

const DeviceLibrary& library_of(void* symbol, const std::string& path) {
  using Entry = const DeviceLibrary* (*)();
  const DeviceLibrary* const library = reinterpret_cast<Entry>(symbol)();
  if (library == nullptr || library->abi != kDeviceLibraryAbi)
    throw failed_precondition(path, " is no device library that this libtreenail knows");
  if (std::string_view(library->build_id) != build_info::kBuildId) {
    throw failed_precondition(path, " is of build ", library->build_id,
                              "; this libtreenail is of build ", build_info::kBuildId);
  }
  return *library;
}

// All of it or nothing: what may be refused is asked before anything is kept.
void take(const DeviceLibrary& library) {
  std::vector<std::unique_ptr<Device>> devices = library.make_devices();
  for (const auto& device : devices) {
    if (device->kind() != library.kind) {
      throw invalid_argument("the device ", to_text(device->name()), " is none of kind ",
                             library.kind);
    }
  }
  check_new_accelerators(devices);
  KernelRegistry::instance().add_all(library.kernels());
  KernelRegistry::instance().set_fuser(library.fuser, library.kind);
  add_accelerators(std::move(devices));
}

}  // namespace

void load_device_library(const std::string& path) {
  open_plugin(path, "treenail_device_library",
              [&path](void* symbol) { take(library_of(symbol, path)); });
}

}  // namespace treenail
