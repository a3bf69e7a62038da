// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_files.h"

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {

const FileRoots* file_roots_of(const PrepareContext& p) { return p.resources().file_roots(); }

}  // namespace treenail
