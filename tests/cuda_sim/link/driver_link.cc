// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/link/driver_link.h"

#include <dlfcn.h>

namespace treenail::cuda_sim {
namespace {

const DriverLink* find() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  static DriverLink link;
  link.enqueue = reinterpret_cast<decltype(link.enqueue)>(::dlsym(library, "cusim_enqueue"));
  link.view = reinterpret_cast<decltype(link.view)>(::dlsym(library, "cusim_view"));
  return link.enqueue == nullptr || link.view == nullptr ? nullptr : &link;
}

}  // namespace

const DriverLink* driver_link() {
  static const DriverLink* const found = find();
  return found;
}

}  // namespace treenail::cuda_sim
