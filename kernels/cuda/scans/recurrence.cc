// SPDX-License-Identifier: Apache-2.0
// LinearRecurrence and CumulativeLogsumexp.
#include <cstdint>
#include <memory>
#include <string_view>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/scans/column_scan.h"
#include "kernels/host/arrays/axis_split.h"

namespace treenail::cuda {
namespace {

using gpu::ColumnScan;

ColumnScan scan_of(const PrepareContext& p, int axis_input, bool exclusive) {
  const host::AxisSplit split = host::split_at_axis(p, axis_input);
  return {split.outer, split.extent, split.inner, exclusive ? 1 : 0,
          p.op().get_bool("reverse") ? 1 : 0};
}

std::unique_ptr<Kernel> prepare_recurrence(const PrepareContext& p) {
  return make_launching_kernel(
      p, [s = scan_of(p, 2, false), function = function_for("recur", p.input_type(0))](
             RunContext& c, CudaDevice& device) {
        function.launch(device, grid_for(device, s.outer * s.inner), s, c.input(0).raw(),
                        c.input(1).raw(), c.output(0).raw(), c.output(1).raw());
      });
}

std::unique_ptr<Kernel> prepare_log_sum(const PrepareContext& p) {
  return make_launching_kernel(
      p, [s = scan_of(p, 1, p.op().get_bool("exclusive")),
          function = function_for("sum_logs", p.input_type(0))](RunContext& c, CudaDevice& device) {
        function.launch(device, grid_for(device, s.outer * s.inner), s, c.input(0).raw(),
                        c.output(0).raw());
      });
}

}  // namespace

void register_recurrence_kernels(KernelRegistrations& r) {
  const TypeConstraint floats = {
      "T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}};
  r.add("LinearRecurrence", {floats}, prepare_recurrence);
  r.add("CumulativeLogsumexp", {floats}, prepare_log_sum);
}

}  // namespace treenail::cuda
