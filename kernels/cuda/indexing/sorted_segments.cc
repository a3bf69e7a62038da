// SPDX-License-Identifier: Apache-2.0
// Segments of sorted ids: SegmentSum and its kin, and SparseSegmentSum and its, whose rows are
// chosen by indices. The last id says how many there are. Nothing is sorted: the ids are the order.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "kernels/cuda/arrays/fill_host.h"
#include "kernels/cuda/driver/counted_kernel.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/merge_host.h"
#include "kernels/cuda/indexing/sorted_ids.h"
#include "kernels/host/reductions/segment_gap.h"
#include "kernels/host/reductions/sorted_ids.h"

namespace treenail::cuda {
namespace {

using gpu::SortedIds;
using host::SegmentReduction;

struct Reduction {
  std::string_view op;
  std::string_view operation;
  SegmentReduction what;
  bool sparse;
};
constexpr Reduction kReductions[] = {
    {"SegmentSum", "Add", SegmentReduction::kSum, false},
    {"SegmentProd", "Multiply", SegmentReduction::kProduct, false},
    {"SegmentMax", "Maximum", SegmentReduction::kMaximum, false},
    {"SegmentMin", "Minimum", SegmentReduction::kMinimum, false},
    {"SegmentMean", "Mean", SegmentReduction::kMean, false},
    {"SparseSegmentSum", "Add", SegmentReduction::kSum, true},
    {"SparseSegmentMean", "Mean", SegmentReduction::kMean, true},
    {"SparseSegmentSqrtN", "SqrtN", SegmentReduction::kSqrtN, true},
};

constinit const GpuFunction kCheck32("check_sorted_int32"), kCheck64("check_sorted_int64"),
    kFound32("sorted_ids_int32"), kFound64("sorted_ids_int64"), kRows32("check_rows_int32"),
    kRows64("check_rows_int64"), kNarrow("Cast_int64_uint32");

bool wide(const Tensor& indices) { return indices.dtype() == DType::kInt64; }

// --- The first pass: values are looked at -------------------------------------------------------

// What is found, when the queue is past it.
std::shared_ptr<const SortedIds> find_end(CudaDevice& device, const Tensor& ids) {
  const int64_t n = ids.num_elements();
  auto found = std::make_shared<SortedIds>(SortedIds{-1, 0, 0, -1});
  if (n == 0) return found;
  constexpr int64_t kWords = sizeof(SortedIds) / sizeof(int64_t);
  const Tensor words(DType::kInt64, Shape({1 + kWords}), &device);
  auto* const fault = static_cast<unsigned long long*>(const_cast<void*>(words.raw()));
  auto* const there = reinterpret_cast<SortedIds*>(fault + 1);
  device.fill_bytes(fault, 0xff, sizeof *fault);
  (wide(ids) ? kCheck64 : kCheck32).launch(device, grid_for(device, n), n, ids.raw(), fault);
  (wide(ids) ? kFound64 : kFound32).launch(device, Grid{.threads = 1}, n, ids.raw(), fault, there);
  device.copy_out(found.get(), there, sizeof *there);
  return found;
}

void check_rows(CudaDevice& device, const Tensor& indices, int64_t rows, const Refusal& refusal) {
  const int64_t n = indices.num_elements();
  if (n == 0) return;
  const FaultWord fault(device);
  (wide(indices) ? kRows64 : kRows32)
      .launch(device, grid_for(device, n), n, rows, indices.raw(), fault.word());
  report_bad_row(fault, indices, rows, refusal);
}

// --- The second pass ----------------------------------------------------------------------------

// Rows of data, as positions; `narrowed` keeps them where they were int64.
const uint32_t* positions_of(CudaDevice& device, const Tensor& indices, Tensor& narrowed) {
  if (!wide(indices)) return static_cast<const uint32_t*>(indices.raw());
  const int64_t n = indices.num_elements();
  narrowed = Tensor(DType::kUInt32, indices.shape(), &device);
  kNarrow.launch(device, grid_for(device, n, 4), n, indices.raw(), narrowed.raw(), 0.0);
  return narrowed.data<uint32_t>();
}

void fill_gaps(CudaDevice& device, const Tensor& gap, Tensor& y) {
  Tensor there(gap.dtype(), gap.shape(), &device);
  device.copy_in(there.raw(), gap.raw(), gap.bytes());
  fill(device, there.raw(), y);
}

// indices: null where row i is row i of data.
Tensor reduce(CudaDevice& device, const Reduction& r, const Tensor& gap, const Tensor& data,
              const Tensor* indices, const Tensor& ids, int64_t segments) {
  Tensor y(data.dtype(), data.shape().with_dim(0, segments), &device);
  if (y.num_elements() == 0) return y;
  fill_gaps(device, gap, y);
  Tensor narrowed;
  OrderedRows order = {{ids.num_elements(), segments, wide(ids) ? 1 : 0, 1}, ids.raw()};
  if (indices != nullptr) order.positions = positions_of(device, *indices, narrowed);
  merge_rows(device, order, r.operation, false, data, y);
  return y;
}

std::unique_ptr<Kernel> prepare_reduction(const PrepareContext& p) {
  const Reduction& r =
      *std::ranges::find(kReductions, std::string_view(p.op().name()), &Reduction::op);
  const int64_t rows = p.input_shape(0).dim(0);
  if (r.sparse && rows > int64_t{1} << 32)
    throw unimplemented("a GPU chooses among at most 4294967296 rows, got ", rows);
  const Tensor gap = host::segment_gap(r.what, true, p.output_type(0));
  return make_counted_kernel(
      p, [&r, gap](RunContext& c, CudaDevice& device, const Refusal& refusal) {
        if (r.sparse) check_rows(device, c.input(1), c.input(0).dim(0), refusal);
        const auto found = find_end(device, c.input(r.sparse ? 2 : 1));
        return [&r, gap, found](RunContext& c, CudaDevice& device) {
          if (found->fault >= 0) host::throw_unsorted(found->fault, found->before, found->id);
          const Tensor* const indices = r.sparse ? &c.input(1) : nullptr;
          const Tensor& ids = c.input(r.sparse ? 2 : 1);
          c.set_output(0, reduce(device, r, gap, c.input(0), indices, ids, found->last + 1));
        };
      });
}

}  // namespace

void register_sorted_segments_kernels(KernelRegistrations& r) {
  for (const Reduction& reduction : kReductions)
    r.add(std::string(reduction.op), {{"T", merge_types(reduction.operation)}}, prepare_reduction);
}

}  // namespace treenail::cuda
