// SPDX-License-Identifier: Apache-2.0
// Finding and opening adapters. A library stays open until the process ends: its functions may be
// running anywhere.
#include "framework/base/adapter.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build_info.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/logging.h"
#include "framework/base/shared_library.h"

namespace treenail {
namespace {

struct Outcome {
  const void* table = nullptr;
  std::string why;  // when table is null
};

std::string describe(const AdapterRequest& request, std::string_view problem,
                     std::string_view remedy) {
  return concat("feature \"", request.name, "\" is needed for ", request.purpose, ": ", problem,
                "; install ", remedy);
}

std::string own_package(const AdapterRequest& request) {
  return concat("Treenail's ", request.name, " adapter, ", version_and_package(request.part));
}

const AdapterHeader* header_of(void* library) {
  using Entry = const void* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "treenail_adapter"));
  return entry == nullptr ? nullptr : static_cast<const AdapterHeader*>(entry());
}

// What the library of this header is instead of an adapter of this version; "" when it is one.
std::string difference(const AdapterHeader* header) {
  if (header == nullptr) return "no adapter of Treenail";
  const std::string_view version = header->version;
  if (version == build_info::kVersion) return "";
  return concat("of Treenail ", version, ", this libtreenail of ", build_info::kVersion);
}

Outcome open_now(const AdapterRequest& request) {
  const std::string path = adapter_path(request.name);
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) {
    return {nullptr,
            describe(request, concat("no file ", path),
                     concat(own_package(request), ", or build it with ", request.packages))};
  }
  if (std::string flaw = library_flaw(path); !flaw.empty()) {
    return {nullptr, describe(request, concat(path, " ", flaw), own_package(request))};
  }
  std::string why;
  void* library = open_shared_library(path, &why);
  if (library == nullptr) {
    return {nullptr, describe(request, concat(path, " ", why), request.packages)};
  }
  const AdapterHeader* header = header_of(library);
  std::string other = difference(header);
  if (other.empty() && header->struct_size != request.struct_size) {
    other = concat("of another build of Treenail ", build_info::kVersion, " than this libtreenail");
  }
  if (!other.empty()) {
    ::dlclose(library);
    return {nullptr, describe(request, concat(path, " is ", other), own_package(request))};
  }
  log(LogLevel::kInfo, "opened ", path);
  return {header, ""};
}

const Outcome& remembered(const AdapterRequest& request) {
  static auto* outcomes = new std::map<std::string, Outcome>;
  const ForkBlock lock;
  const auto at = outcomes->find(request.name);
  if (at != outcomes->end()) return at->second;
  Outcome outcome = open_now(request);
  if (outcome.table == nullptr) log(LogLevel::kInfo, outcome.why);
  return outcomes->emplace(request.name, std::move(outcome)).first->second;
}

}  // namespace

const void* open_adapter(const AdapterRequest& request) {
  const Outcome& outcome = remembered(request);
  if (outcome.table == nullptr) throw unimplemented(outcome.why);
  return outcome.table;
}

const void* try_open_adapter(const AdapterRequest& request, std::string* why) {
  const Outcome& outcome = remembered(request);
  if (outcome.table == nullptr && why != nullptr) *why = outcome.why;
  return outcome.table;
}

std::string adapter_difference(void* library) { return difference(header_of(library)); }

std::string version_and_package(const char* part) {
  const std::string_view own = part == nullptr ? "" : part;
  return concat("version ", build_info::kVersion, " (Debian: libtreenail",
                build_info::kVersionMajor, own.empty() ? "" : "-", own, ", Fedora: treenail-",
                own.empty() ? "libs" : own, ")");
}

std::string adapter_path(std::string_view name) { return installed_library_path("adapters", name); }

std::string installed_library_path(std::string_view folder, std::string_view name) {
  return concat(private_library_directory(), "/", folder, "/libtreenail-", name, ".so");
}

std::vector<std::string> installed_adapters() {
  constexpr std::string_view kBefore = "libtreenail-", kAfter = ".so";
  std::vector<std::string> names;
  DIR* directory = ::opendir(concat(private_library_directory(), "/adapters").c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view file = entry->d_name;
    if (file.size() > kBefore.size() + kAfter.size() && file.starts_with(kBefore) &&
        file.ends_with(kAfter)) {
      names.emplace_back(file.substr(kBefore.size(), file.size() - kBefore.size() - kAfter.size()));
    }
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string library_file() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&private_library_directory), &info) == 0 ||
      info.dli_fname == nullptr) {
    throw internal_error("cannot tell where libtreenail lies; set TREENAIL_LIBRARY_DIR");
  }
  return info.dli_fname;
}

std::string private_library_directory() {
  if (std::optional<std::string> directory = env_text("TREENAIL_LIBRARY_DIR")) return *directory;
  const std::string file = library_file();
  const std::string_view path = file;
  const size_t slash = path.rfind('/');
  return concat(slash == std::string_view::npos ? std::string_view(".") : path.substr(0, slash),
                "/treenail-", build_info::kVersionMajor);
}

}  // namespace treenail
