// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/control.cc.
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::host {

void register_control_kernels(KernelRegistry& r) {
  r.add("NoOp", {}, [](const PrepareContext&) -> std::unique_ptr<Kernel> {
    return make_kernel([](RunContext&) {}, 1);
  });
}

}  // namespace treenail::host
