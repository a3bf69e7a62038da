// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/segment.cc: rows combined into the row of their segment, in their order.
// The first row of a segment is copied, later ones are combined with it, so that no neutral element
// is needed. Sums, products and means of half types run in float and are rounded once at the end.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "framework/base/error.h"
#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/scatter/row_ops.h"
#include "kernels/host/reductions/segment_gap.h"
#include "kernels/host/reductions/sorted_ids.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;
using What = host::SegmentReduction;

constexpr RowOp row_op(What what) {
  switch (what) {
    case What::kProduct:
      return RowOp::kMultiply;
    case What::kMaximum:
      return RowOp::kMaximum;
    case What::kMinimum:
      return RowOp::kMinimum;
    default:
      return RowOp::kAdd;
  }
}

bool runs_in_float(What what, DType dtype) {
  const bool order = what == What::kMaximum || what == What::kMinimum;
  return (dtype == DType::kFloat16 || dtype == DType::kBFloat16) && !order;
}

template <class T>
void divide_row(void* row, int64_t n, int64_t count) {
  T* at = static_cast<T*>(row);
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  const Wide divisor = static_cast<Wide>(count);  // a count need not fit into T
  for (int64_t i = 0; i < n; ++i) at[i] = static_cast<T>(static_cast<Wide>(at[i]) / divisor);
}

// Of a sum, by the square root of the number of its rows: floating types only.
void divide_by_root(DType dtype, void* row, int64_t n, int64_t count) {
  dispatch<float, double>(dtype, [&]<class T>() {
    T* at = static_cast<T*>(row);
    const T divisor = std::sqrt(static_cast<T>(count));
    for (int64_t i = 0; i < n; ++i) at[i] /= divisor;
  });
}

void divide(DType dtype, void* row, int64_t n, int64_t count) {
  dispatch<float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(
      dtype, [&]<class T>() { divide_row<T>(row, n, count); });
}

// One reduction: fixed when the kernel is prepared.
struct Reduction {
  What what;
  bool sorted;
  DType dtype;    // of data and result
  DType running;  // in which rows are combined
  RowFn combine;  // on rows of the running dtype
  Tensor gap;
  int64_t row;  // elements
  int64_t ids;  // number of them
  int ids_input;

  size_t running_bytes(int64_t segments) const {
    return running == dtype ? 0 : static_cast<size_t>(segments * row) * sizeof(float);
  }
};

Reduction reduction_of(const PrepareContext& p, What what, bool sorted, int ids_input = 1) {
  const Shape& ids = p.input_shape(ids_input);
  Reduction r;
  r.what = what;
  r.sorted = sorted;
  r.dtype = p.output_type(0);
  r.running = runs_in_float(what, r.dtype) ? DType::kFloat32 : r.dtype;
  r.combine = row_fn(row_op(what), r.running);
  r.gap = host::segment_gap(what, sorted, r.dtype);
  r.ids = ids.num_elements();
  r.ids_input = ids_input;
  r.row = p.input_shape(0).sub(ids.rank(), p.input_shape(0).rank()).num_elements();
  return r;
}

// One run: `counts` rows per segment, `rows` in the running dtype (the output itself where that is
// the result's).
struct Segments {
  const Reduction& r;
  int64_t count;
  int64_t* counts;
  std::byte* rows;
  Tensor& output;
  const Tensor* indices = nullptr;  // row i is row indices[i] of data

  void reduce(RunContext& c) const;

 private:
  template <class Index>
  void take(std::span<const Index> ids, const std::byte* data, int64_t first, int64_t last) const;
  template <class T>
  void take_half(const T* from, float* to, bool first) const;
  void take_row(const std::byte* data, int64_t i, int64_t segment) const;
  int64_t source(int64_t i) const {
    if (indices == nullptr) return i;
    return indices->dtype() == DType::kInt32 ? indices->data<int32_t>()[i]
                                             : indices->data<int64_t>()[i];
  }
  void complete(int64_t segment) const;
};

template <class T>
void Segments::take_half(const T* from, float* to, bool first) const {
  constexpr int64_t kTile = 256;
  float tile[kTile];
  if (first) {
    widen(from, to, r.row);
    return;
  }
  for (int64_t begin = 0; begin < r.row; begin += kTile) {
    const int64_t n = std::min(kTile, r.row - begin);
    widen(from + begin, tile, n);
    r.combine(to + begin, tile, n, false);
  }
}

void Segments::take_row(const std::byte* data, int64_t i, int64_t segment) const {
  const bool first = counts[segment]++ == 0;
  const int64_t at = source(i) * r.row;
  if (r.running != r.dtype) {
    float* to = reinterpret_cast<float*>(rows) + segment * r.row;
    if (r.dtype == DType::kFloat16) {
      take_half(reinterpret_cast<const Float16*>(data) + at, to, first);
    } else {
      take_half(reinterpret_cast<const BFloat16*>(data) + at, to, first);
    }
    return;
  }
  const int64_t size = static_cast<int64_t>(dtype_size(r.dtype));
  std::byte* to = rows + segment * r.row * size;
  if (first) {
    std::memcpy(to, data + at * size, static_cast<size_t>(r.row * size));
  } else {
    r.combine(to, data + at * size, r.row, false);
  }
}

// The result's row: divided, narrowed, or the gap's value.
void Segments::complete(int64_t segment) const {
  const int64_t size = static_cast<int64_t>(dtype_size(r.dtype));
  auto* out = static_cast<std::byte*>(output.raw()) + segment * r.row * size;
  if (counts[segment] == 0) {
    for (int64_t i = 0; i < r.row; ++i)
      std::memcpy(out + i * size, r.gap.raw(), static_cast<size_t>(size));
    return;
  }
  std::byte* row = rows + segment * r.row * static_cast<int64_t>(dtype_size(r.running));
  if (r.what == What::kMean) divide(r.running, row, r.row, counts[segment]);
  if (r.what == What::kSqrtN) divide_by_root(r.running, row, r.row, counts[segment]);
  if (r.running == r.dtype) return;
  const float* from = reinterpret_cast<const float*>(row);
  if (r.dtype == DType::kFloat16) {
    narrow(from, reinterpret_cast<Float16*>(out), r.row);
  } else {
    narrow(from, reinterpret_cast<BFloat16*>(out), r.row);
  }
}

template <class Index>
void Segments::take(std::span<const Index> ids, const std::byte* data, int64_t first,
                    int64_t last) const {
  std::fill(counts + first, counts + last, int64_t{0});
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t segment = ids[i];
    if (segment >= first && segment < last) take_row(data, static_cast<int64_t>(i), segment);
  }
  for (int64_t segment = first; segment < last; ++segment) complete(segment);
}

// Each piece owns a range of segments and looks through all ids; how many there are depends on the
// amount of work alone.
void Segments::reduce(RunContext& c) const {
  constexpr int64_t kWorkPerRange = 65536;
  const int64_t work = r.ids * r.row;
  const int64_t ranges = std::clamp<int64_t>(work / kWorkPerRange, 1, 16);
  const int64_t grain = std::max<int64_t>(1, (count + ranges - 1) / ranges);
  const double cost = static_cast<double>(work + r.ids + count * r.row) /
                      static_cast<double>(std::max<int64_t>(count, 1));
  const auto* data = static_cast<const std::byte*>(c.input(0).raw());
  dispatch<int32_t, int64_t>(c.input(r.ids_input).dtype(), [&]<class Index>() {
    const std::span<const Index> ids = c.input(r.ids_input).values<Index>();
    c.parallel_for(count, grain, cost,
                   [&](int64_t first, int64_t last) { take(ids, data, first, last); });
  });
}

// --- Kernels ----------------------------------------------------------------------------------

template <class Index>
void check_below(const Tensor& ids, int64_t segments) {
  const std::span<const Index> values = ids.values<Index>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= segments)
      throw_bad_index("segment_ids", ids.shape(), static_cast<int64_t>(i), values[i], segments);
  }
}

void check_indices(const Tensor& indices, int64_t rows) {
  dispatch<int32_t, int64_t>(indices.dtype(), [&]<class Index>() {
    const std::span<const Index> values = indices.values<Index>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= rows)
        throw_bad_index("indices", indices.shape(), static_cast<int64_t>(i), values[i], rows);
    }
  });
}

template <What kWhat>
KernelPtr prepare_unsorted(const PrepareContext& p) {
  const Reduction r = reduction_of(p, kWhat, false);
  const int64_t segments = p.output_shape(0).dim(0);
  const double cost =
      50 + static_cast<double>(p.input_shape(0).num_elements() + p.output_shape(0).num_elements());
  const size_t counts_bytes = static_cast<size_t>(segments) * sizeof(int64_t);
  return make_kernel(
      [r, segments, counts_bytes](RunContext& c) {
        if (c.input(1).dtype() == DType::kInt32) {
          check_below<int32_t>(c.input(1), segments);
        } else {
          check_below<int64_t>(c.input(1), segments);
        }
        Tensor& output = c.output(0);
        std::byte* rows = r.running == r.dtype ? static_cast<std::byte*>(output.raw())
                                               : c.scratch() + counts_bytes;
        Segments{r, segments, reinterpret_cast<int64_t*>(c.scratch()), rows, output}.reduce(c);
      },
      cost, counts_bytes + r.running_bytes(segments));
}

// The number of segments: the last id plus 1.
template <class Index>
int64_t check_sorted(const Tensor& ids) {
  const std::span<const Index> values = ids.values<Index>();
  for (size_t i = 0; i < values.size(); ++i) {
    const Index before = i > 0 ? values[i - 1] : Index(0);
    if (values[i] < before) host::throw_unsorted(static_cast<int64_t>(i), before, values[i]);
  }
  return values.empty() ? 0 : static_cast<int64_t>(values.back()) + 1;
}

// With `kIndirect` the rows are chosen by input 1, and the ids are input 2.
template <What kWhat, bool kIndirect = false>
KernelPtr prepare_sorted(const PrepareContext& p) {
  const Reduction r = reduction_of(p, kWhat, true, kIndirect ? 2 : 1);
  return make_kernel(
      [r](RunContext& c) {
        const Tensor& ids = c.input(r.ids_input);
        const Tensor* indices = kIndirect ? &c.input(1) : nullptr;
        if (indices != nullptr) check_indices(*indices, c.input(0).shape().dim(0));
        const int64_t segments =
            ids.dtype() == DType::kInt32 ? check_sorted<int32_t>(ids) : check_sorted<int64_t>(ids);
        Tensor output(r.dtype, c.input(0).shape().with_dim(0, segments));
        // The number of segments is known only now, so these come from the allocator's cache.
        Tensor counts(DType::kInt64, Shape({segments}));
        Tensor running;
        if (r.running != r.dtype) running = Tensor(r.running, output.shape());
        auto* rows = static_cast<std::byte*>(running.defined() ? running.raw() : output.raw());
        Segments{r, segments, counts.data<int64_t>(), rows, output, indices}.reduce(c);
        c.set_output(0, std::move(output));
      },
      50 + static_cast<double>(r.ids * r.row));
}

}  // namespace

void register_segment_kernels(KernelRegistry& r) {
  r.add("SegmentSum", {}, prepare_sorted<What::kSum>);
  r.add("SegmentProd", {}, prepare_sorted<What::kProduct>);
  r.add("SegmentMax", {}, prepare_sorted<What::kMaximum>);
  r.add("SegmentMin", {}, prepare_sorted<What::kMinimum>);
  r.add("SegmentMean", {}, prepare_sorted<What::kMean>);
  r.add("SparseSegmentSum", {}, prepare_sorted<What::kSum, true>);
  r.add("SparseSegmentMean", {}, prepare_sorted<What::kMean, true>);
  r.add("SparseSegmentSqrtN", {}, prepare_sorted<What::kSqrtN, true>);
  r.add("UnsortedSegmentSum", {}, prepare_unsorted<What::kSum>);
  r.add("UnsortedSegmentProd", {}, prepare_unsorted<What::kProduct>);
  r.add("UnsortedSegmentMax", {}, prepare_unsorted<What::kMaximum>);
  r.add("UnsortedSegmentMin", {}, prepare_unsorted<What::kMinimum>);
}

}  // namespace treenail::cpu
