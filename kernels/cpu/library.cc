// SPDX-License-Identifier: Apache-2.0
// The one symbol a kernel library exports. Constant data: the library has no static initialisers.
#include "build_info.h"
#include "framework/runtime/kernel/kernel_registry.h"

#ifndef TREENAIL_ISA_LEVEL
#error "TREENAIL_ISA_LEVEL names the instruction set level this object is compiled for"
#endif

namespace treenail::cpu {

// Generated from the file names of kernels/cpu.
void register_all(KernelRegistry& registry);

namespace {

constexpr KernelLibrary kLibrary = {kKernelLibraryAbi, build_info::kBuildId, TREENAIL_ISA_LEVEL,
                                    &register_all};

}  // namespace
}  // namespace treenail::cpu

extern "C" const treenail::KernelLibrary* treenail_kernel_library() {
  return &treenail::cpu::kLibrary;
}
