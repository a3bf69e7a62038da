// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/entries.h"

#include <dlfcn.h>

#include "framework/base/error.h"

namespace treenail::cuda {

void load_entries(const char* what, const char* soname, const std::string& wanted,
                  std::span<const Entry> entries) {
  void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw failed_precondition(what, " is not there: ", why != nullptr ? why : soname);
  }
  for (const Entry& entry : entries) {
    *entry.place = dlsym(library, entry.name);
    if (*entry.place != nullptr) continue;
    throw failed_precondition(what, " has no ", entry.name, ": ", soname, " is older than ", wanted,
                              ", which this plugin was built for");
  }
}

}  // namespace treenail::cuda
