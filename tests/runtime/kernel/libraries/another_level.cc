// SPDX-License-Identifier: Apache-2.0
// A kernel library of this build, but of no level that any directory is for.
#include "build_info.h"
#include "framework/runtime/kernel/kernel_registry.h"

extern "C" const treenail::KernelLibrary* treenail_kernel_library(void);

namespace treenail {
namespace {

constexpr KernelLibrary kLibrary = {kKernelLibraryAbi, build_info::kBuildId, "another", nullptr};

}  // namespace
}  // namespace treenail

extern "C" const treenail::KernelLibrary* treenail_kernel_library(void) {
  return &treenail::kLibrary;
}
