// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/logging.h"
#include "framework/base/shared_library.h"

namespace treenail {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const { ::dlclose(handle); }
};
struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Of libraries that stay open. Never destroyed: a plugin may be loaded while the process ends.
std::vector<void*>& open_handles() {
  static auto* handles = new std::vector<void*>;
  return *handles;
}

void append_directory(const std::string& path, std::vector<std::string>& files) {
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
  if (!directory) {
    throw failed_precondition("TREENAIL_PLUGIN_PATH names the directory ", path,
                              ", which cannot be read: ", std::strerror(errno));
  }
  std::vector<std::string> found;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name.size() > 3 && name.ends_with(".so")) found.push_back(concat(path, "/", name));
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

}  // namespace

void open_plugin(const std::string& path, const char* entry,
                 FunctionRef<void(void* symbol)> initialise) {
  const ForkBlock lock;
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0)
    throw not_found("no plugin at ", path, ": ", std::strerror(errno));
  std::string why;
  std::unique_ptr<void, CloseLibrary> handle(open_shared_library(path, &why));
  if (!handle) throw failed_precondition("the plugin ", path, " ", why);
  std::vector<void*>& handles = open_handles();
  // The same library again: dlopen counted it once more, the unique_ptr takes that back.
  if (std::find(handles.begin(), handles.end(), handle.get()) != handles.end()) return;
  void* symbol = ::dlsym(handle.get(), entry);
  if (symbol == nullptr) {
    throw failed_precondition(path, " is no Treenail plugin: it does not export ", entry);
  }
  handles.reserve(handles.size() + 1);
  initialise(symbol);
  handles.push_back(handle.release());
  log(LogLevel::kInfo, "opened ", path);
}

std::vector<std::string> plugins_of_environment() {
  std::vector<std::string> files;
  const std::string list = env_text("TREENAIL_PLUGIN_PATH").value_or("");
  std::string_view rest = list;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string path(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (path.empty()) continue;
    struct stat entry = {};
    if (::stat(path.c_str(), &entry) != 0) {
      throw not_found("TREENAIL_PLUGIN_PATH names ", path, ": ", std::strerror(errno));
    }
    if (S_ISDIR(entry.st_mode)) {
      append_directory(path, files);
    } else {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace treenail
