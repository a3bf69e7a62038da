// SPDX-License-Identifier: Apache-2.0
// The kernel library of one ISA level, chosen among the installed ones and opened at the first
// kernel look-up: <private_library_directory()>/kernels/<level>/libtreenail-kernels-cpu.so. What it
// exports: KernelLibrary in kernel_registry.h; its side of it: kernels/cpu/library.cc.
#pragma once

#include <string>
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail {

// Levels with a kernel library on disk, lowest first.
std::vector<std::string> installed_kernel_levels();

// The opened library; opens it at the first call. Errors: as choose_level(); FailedPrecondition
// when the library cannot be loaded or belongs to another build. A failed attempt is repeated at
// the next call.
const KernelLibrary& kernel_library();

// The level whose kernels this process uses: "x86-64-v3". Errors: as kernel_library().
std::string kernel_level_in_use();

}  // namespace treenail
