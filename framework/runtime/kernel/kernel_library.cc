// SPDX-License-Identifier: Apache-2.0
// Choosing and opening the kernel library. The CPU is asked before anything of the library is
// executed; the library has no static initialisers, so that opening it runs none of its code.
#include "framework/runtime/kernel/kernel_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "build_info.h"
#include "framework/base/adapter.h"
#include "framework/base/cpu_features.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/logging.h"
#include "framework/base/shared_library.h"

namespace treenail {
namespace {

std::string library_path(std::string_view level) {
  return concat(private_library_directory(), "/kernels/", level, "/libtreenail-kernels-cpu.so");
}

// Behind a sentence about the library at `path`: what runs here, and what to do.
std::string remedy(std::string_view level, const std::vector<std::string>& installed) {
  std::string text = concat("; this CPU runs ", best_level(),
                            "; install Treenail's kernel libraries again, ", version_and_package());
  if (env_text("TREENAIL_CPU_ISA")) return text;  // asks for this level and no other
  std::string_view lower;
  for (const std::string& name : installed) {
    if (name == level) break;
    if (cpu_runs(name)) lower = name;
  }
  if (!lower.empty()) text += concat(", or remove that file: level ", lower, " is used then");
  return text;
}

const KernelLibrary* open_library() {
  const std::vector<std::string> installed = installed_kernel_levels();
  const std::vector<std::string_view> names(installed.begin(), installed.end());
  const std::string_view level = choose_level(names);
  const std::string path = library_path(level);
  std::string why;
  void* handle = open_shared_library(path, &why);
  if (handle == nullptr) {
    throw failed_precondition("the kernel library of level ", level, ", ", path, ", ", why,
                              remedy(level, installed));
  }
  using Entry = const KernelLibrary* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(handle, "treenail_kernel_library"));
  const KernelLibrary* library = entry == nullptr ? nullptr : entry();
  const bool known = library != nullptr && library->abi == kKernelLibraryAbi;
  if (!known || std::string_view(library->build_id) != build_info::kBuildId ||
      library->level != level) {
    const std::string other =
        known ? concat("of build ", library->build_id, ", level ", library->level)
              : std::string("no kernel library that this libtreenail knows");
    ::dlclose(handle);
    throw failed_precondition(path, " is ", other, "; this libtreenail is of build ",
                              build_info::kBuildId, " and needs level ", level, " of it there",
                              remedy(level, installed));
  }
  log(LogLevel::kInfo, "opened ", path);
  return library;
}

}  // namespace

std::vector<std::string> installed_kernel_levels() {
  std::vector<std::string> levels;
  for (std::string_view level : isa_levels()) {
    if (::access(library_path(level).c_str(), F_OK) == 0) levels.emplace_back(level);
  }
  return levels;
}

const KernelLibrary& kernel_library() {
  static std::atomic<const KernelLibrary*> library{nullptr};
  return made_once(library, open_library);
}

std::string kernel_level_in_use() { return kernel_library().level; }

}  // namespace treenail
