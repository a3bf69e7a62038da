// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: the plans are the host's (host/arrays/copy_plan.h).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
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

// The copy of a Transpose; complex numbers are conjugated where they have come to lie.
std::unique_ptr<Kernel> prepare_conjugate_transpose(const PrepareContext& p) {
  const auto ops = host::copy_ops();
  const auto transpose = std::ranges::find(ops, std::string_view("Transpose"), &host::CopyOp::name);
  return make_launching_kernel(
      p, [copy = transpose->plan(p).parts.at(0).copy, conjugates = is_complex(p.output_type(0)),
          conjugate = function_for("Conj", p.output_type(0))](RunContext& c, CudaDevice& device) {
        void* const y = c.output(0).raw();
        launch_copy(device, copy, c.input(0).raw(), y);
        const int64_t n = c.output(0).num_elements();
        if (conjugates) conjugate.launch(device, grid_for(device, n, 4), n, y, y, 0.0);
      });
}

}  // namespace

void register_copies_kernels(KernelRegistrations& r) {
  r.add_plain("ConjugateTranspose", prepare_conjugate_transpose);
  for (const host::CopyOp& op : host::copy_ops()) r.add_plain(op.name, prepare_copies);
}

}  // namespace treenail::cuda
