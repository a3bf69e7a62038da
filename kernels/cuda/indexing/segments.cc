// SPDX-License-Identifier: Apache-2.0
// UnsortedSegmentSum, Prod, Max and Min.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/cuda/arrays/fill_host.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/merge_host.h"
#include "kernels/host/reductions/segment_gap.h"

namespace treenail::cuda {
namespace {

using host::SegmentReduction;

struct Reduction {
  std::string_view op;
  std::string_view operation;
  SegmentReduction what;
};
constexpr Reduction kReductions[] = {
    {"UnsortedSegmentSum", "Add", SegmentReduction::kSum},
    {"UnsortedSegmentProd", "Multiply", SegmentReduction::kProduct},
    {"UnsortedSegmentMax", "Maximum", SegmentReduction::kMaximum},
    {"UnsortedSegmentMin", "Minimum", SegmentReduction::kMinimum},
};

void reduce(CudaDevice& device, std::string_view operation, const Tensor& data, const Tensor& ids,
            Tensor& y, Failure failure) {
  const int64_t segments = y.dim(0);
  gpu::Places places = rows_in(segments, ids.shape());
  if (places.n == 0) return;
  places.skips = gpu::kSkipsNegative;
  const RowOrder order(device, places, ids);
  const Tensor rows = data.reshaped(y.shape().with_dim(0, places.n));
  merge_rows(device, order.rows(), operation, false, rows, y);
  report_bad_row(order.fault(), ids, segments, failure, "segment_ids");
}

std::unique_ptr<Kernel> prepare_reduction(const PrepareContext& p) {
  const Reduction& r =
      *std::ranges::find(kReductions, std::string_view(p.op().name()), &Reduction::op);
  const Tensor gap = host::segment_gap(r.what, false, p.output_type(0));
  auto kernel =
      make_launching_kernel(p, [&r, gap](RunContext& c, CudaDevice& device, Failure failure) {
        device.copy_in(c.scratch(), gap.raw(), gap.bytes());
        fill(device, c.scratch(), c.output(0));
        reduce(device, r.operation, c.input(0), c.input(1), c.output(0), failure);
      });
  kernel->scratch_bytes = gap.bytes();
  return kernel;
}

}  // namespace

void register_segments_kernels(KernelRegistrations& r) {
  for (const Reduction& reduction : kReductions)
    r.add(std::string(reduction.op), {{"T", merge_types(reduction.operation)}}, prepare_reduction);
}

}  // namespace treenail::cuda
