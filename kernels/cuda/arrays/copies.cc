// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: the plans are the host's (host/arrays/copy_plan.h).
#include <memory>
#include <utility>

#include "kernels/cuda/arrays/strided_launch_host.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/host/arrays/copy_plan.h"

namespace treenail::cuda {
namespace {

std::unique_ptr<Kernel> prepare_copies(const PrepareContext& p) {
  return make_launching_kernel(p, [plan = host::plan_copies(p), outputs = p.op().num_outputs()](
                                      RunContext& c, CudaDevice& device) {
    for (int i = 0; plan.zeros && i < outputs; ++i)
      device.zero(c.output(i).raw(), c.output(i).bytes());
    for (const host::CopyPlan::Part& part : plan.parts)
      launch_copy(device, part.copy, c.input(part.from).raw(), c.output(part.to).raw());
  });
}

}  // namespace

void register_copies_kernels(KernelRegistrations& r) {
  for (const host::CopyOp& op : host::copy_ops()) r.add_plain(op.name, prepare_copies);
}

}  // namespace treenail::cuda
