// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/process_info.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "build_info.h"
#include "framework/base/adapter.h"
#include "framework/base/cpu_features.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/loaded_libraries.h"
#include "framework/base/logging.h"
#include "framework/base/shared_library.h"
#include "framework/base/text.h"
#include "framework/base/thread_pool.h"
#include "framework/device/allocator.h"
#include "framework/runtime/kernel/installed_devices.h"
#include "framework/runtime/kernel/kernel_library.h"

namespace treenail {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

std::set<std::string> loaded_paths() {
  std::set<std::string> paths;
  for (LoadedLibrary& library : loaded_libraries()) paths.insert(std::move(library.path));
  return paths;
}

// A switchable BLAS opens the one it is switched to by itself: nobody names that file.
void add_opened_meanwhile(const std::set<std::string>& before, const std::string& own,
                          AdapterInfo* adapter) {
  std::set<std::string> known(adapter->libraries.begin(), adapter->libraries.end());
  known.insert(adapter->indirect.begin(), adapter->indirect.end());
  for (const std::string& path : loaded_paths()) {
    if (path == own || before.contains(path)) continue;
    std::string real = real_path(path);
    if (known.insert(real).second) adapter->indirect.push_back(std::move(real));
  }
}

AdapterInfo describe(const std::string& name, OpenAdapters open) {
  AdapterInfo adapter;
  adapter.name = name;
  const std::string path = adapter_path(name);
  const int mode = RTLD_NOW | RTLD_LOCAL | (open == OpenAdapters::kYes ? 0 : RTLD_NOLOAD);
  if (const std::string flaw = library_flaw(path); !flaw.empty()) {
    if (open == OpenAdapters::kYes) adapter.problem = concat(path, " ", flaw);
    return adapter;
  }
  const std::set<std::string> before = loaded_paths();
  // An adapter is never closed: it stays as in base/adapter.cc.
  void* handle = ::dlopen(path.c_str(), mode);
  if (handle == nullptr) {
    const char* text = ::dlerror();
    if (open == OpenAdapters::kYes) adapter.problem = text != nullptr ? text : "cannot be loaded";
    return adapter;
  }
  if (const std::string other = adapter_difference(handle); !other.empty()) {
    ::dlclose(handle);
    adapter.problem = concat(path, " is ", other);
    return adapter;
  }
  adapter.loaded = true;
  link_map* map = nullptr;  // the name under which it was opened first
  const bool named = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  const std::string own = named ? map->l_name : path;
  const BroughtLibraries brought = brought_by(own, library_file());
  adapter.libraries = brought.direct;
  adapter.indirect = brought.indirect;
  if (open == OpenAdapters::kYes) add_opened_meanwhile(before, own, &adapter);
  return adapter;
}

void ask_kernels(ProcessInfo* info) {
  try {
    info->kernel_level = kernel_level_in_use();
  } catch (const Error& error) {
    info->kernel_problem = error.message();
  }
}

void ask_threads(ProcessInfo* info) {
  try {
    info->num_threads = ThreadPool::instance().num_threads();
    info->threads_origin = ThreadPool::instance().threads_origin();
  } catch (const Error& error) {
    info->threads_origin = error.message();
  }
}

void ask_memory(ProcessInfo* info) {
  try {
    info->memory_limit = Allocator::host().limit();
  } catch (const Error& error) {
    info->memory_problem = error.message();
  }
}

}  // namespace

std::string library_version() { return build_info::kVersion; }

void check_environment() {
  static_cast<void>(log_enabled(LogLevel::kError));  // answers a wrong TREENAIL_LOG by a line
  static_cast<void>(default_num_threads(nullptr));
  static_cast<void>(env_bytes("TREENAIL_MEMORY_LIMIT"));
  const std::optional<std::string> directory = env_text("TREENAIL_LIBRARY_DIR");
  if (directory && installed_kernel_levels().empty()) {
    throw not_found("environment variable TREENAIL_LIBRARY_DIR is \"", *directory,
                    "\"; needed is a directory in which kernels/ holds kernel libraries");
  }
}

ProcessInfo process_info(OpenAdapters open) {
  ProcessInfo info;
  info.version = build_info::kVersion;
  info.build_id = build_info::kBuildId;
  info.build_type = build_info::kBuildType;
  info.machine = build_info::kMachine;
  info.isa_baseline = build_info::kIsaBaseline;
  info.kernel_levels = words(build_info::kKernelLevels);
  info.features = words(build_info::kFeatures);
  info.installed_kernel_levels = installed_kernel_levels();
  info.best_level = best_level();
  info.cpu_features = cpu_features();
  ask_kernels(&info);
  for (const std::string& name : installed_adapters()) {
    info.adapters.push_back(describe(name, open));
  }
  open_installed_devices();
  for (const Device* device : session_devices({})) info.devices.push_back(to_text(device->name()));
  ask_threads(&info);
  ask_memory(&info);
  return info;
}

}  // namespace treenail
