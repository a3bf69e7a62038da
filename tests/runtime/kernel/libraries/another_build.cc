// SPDX-License-Identifier: Apache-2.0
// A kernel library that another build of Treenail left behind.
#include "framework/runtime/kernel/kernel_registry.h"

extern "C" const treenail::KernelLibrary* treenail_kernel_library(void);

namespace treenail {
namespace {

constexpr KernelLibrary kLibrary = {kKernelLibraryAbi, "0.0.7-0123456789ab", "another", nullptr};

}  // namespace
}  // namespace treenail

extern "C" const treenail::KernelLibrary* treenail_kernel_library(void) {
  return &treenail::kLibrary;
}
