// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/installed_devices.h"

#include <atomic>
#include <string>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/device/device.h"
#include "framework/runtime/kernel/device_library.h"

namespace treenail {
namespace {

constexpr std::string_view kFolder = "devices";

// What there is a library for, and what its package is called where that is not installed.
struct KnownLibrary {
  std::string_view name;
  std::string_view kind;
  const char* what;
};
constexpr KnownLibrary kKnown[] = {{"cuda", "GPU", "NVIDIA GPUs"}};

void open(const KnownLibrary& library) {
  const std::string path = installed_library_path(kFolder, library.name);
  try {
    load_device_library(path);
  } catch (const Error& error) {
    const bool absent = error.code() == Code::kNotFound;
    note_missing(library.kind, absent ? concat("the part of Treenail for ", library.what,
                                               " is not installed: ", version_and_package("cuda"))
                                      : error.message());
  }
}

const bool* open_all() {
  for (const KnownLibrary& library : kKnown) open(library);
  return new const bool(true);
}

}  // namespace

void open_installed_devices() {
  static std::atomic<const bool*> opened{nullptr};
  made_once(opened, open_all);
}

}  // namespace treenail
