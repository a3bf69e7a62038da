// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/layout.cc (but for borders: padding.cc), and BroadcastTo: strided
// copies.
#include <algorithm>
#include <complex>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/copy_plan.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/arrays/sequence_layout.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

CopyPlan one_copy(StridedCopy& copy) { return {false, {{copy.finish()}}}; }

// --- Transpose --------------------------------------------------------------------------------

StridedCopy transposing_copy(const PrepareContext& p) {
  int64_t storage[kMaxRank];
  const std::span<const int64_t> perm = as_int64(p.host_value(1), storage);
  const Strides from = dense_strides(p.input_shape(0));
  const Strides to = dense_strides(p.output_shape(0));
  StridedCopy copy(p.output_type(0));
  for (int i = 0; i < p.output_shape(0).rank(); ++i) {
    const int64_t axis = perm[static_cast<size_t>(i)];
    copy.axis(p.output_shape(0).dim(i),
              from[static_cast<int>(axis < 0 ? axis + p.output_shape(0).rank() : axis)], to[i]);
  }
  return copy.finish();
}

CopyPlan plan_transpose(const PrepareContext& p) { return {false, {{transposing_copy(p)}}}; }

template <class T>
KernelPtr conjugating_kernel(const StridedCopy& copy) {
  return make_kernel(
      [copy](RunContext& c) {
        copy.run(c, c.input(0).raw(), c.output(0).raw());
        T* out = c.output(0).data<T>();
        c.parallel_for(c.output(0).num_elements(), kMoveGrain<T>, kMoveCost<T>,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) out[i] = std::conj(out[i]);
                       });
      },
      2 * copy.cost_ns());
}

KernelPtr prepare_conjugate_transpose(const PrepareContext& p) {
  switch (p.output_type(0)) {
    case DType::kComplex64:
      return conjugating_kernel<std::complex<float>>(transposing_copy(p));
    case DType::kComplex128:
      return conjugating_kernel<std::complex<double>>(transposing_copy(p));
    default:
      break;
  }
  const StridedCopy copy = transposing_copy(p);
  return make_kernel([copy](RunContext& c) { copy.run(c, c.input(0).raw(), c.output(0).raw()); },
                     copy.cost_ns());
}

// --- Repetition -------------------------------------------------------------------------------

CopyPlan plan_tile(const PrepareContext& p) {
  const Shape& input = p.input_shape(0);
  int64_t storage[kMaxRank];
  const std::span<const int64_t> multiples = as_int64(p.host_value(1), storage);
  const Strides from = dense_strides(input);
  const Strides to = dense_strides(p.output_shape(0));
  StridedCopy copy(p.output_type(0));
  for (int i = 0; i < input.rank(); ++i) {
    copy.axis(multiples[static_cast<size_t>(i)], 0, to[i] * input.dim(i));
    copy.axis(input.dim(i), from[i], to[i]);
  }
  return one_copy(copy);
}

CopyPlan plan_broadcast_to(const PrepareContext& p) {
  const Shape& input = p.input_shape(0);
  const Shape& output = p.output_shape(0);
  const Strides from = dense_strides(input);
  const Strides to = dense_strides(output);
  const int new_axes = output.rank() - input.rank();
  StridedCopy copy(p.output_type(0));
  for (int i = 0; i < output.rank(); ++i) {
    const bool repeated = i < new_axes || input.dim(i - new_axes) == 1;
    copy.axis(output.dim(i), repeated ? 0 : from[i - new_axes], to[i]);
  }
  return one_copy(copy);
}

// --- Reversal ---------------------------------------------------------------------------------

CopyPlan plan_reverse(const PrepareContext& p) {
  const Shape& shape = p.input_shape(0);
  int64_t storage[kMaxRank];
  const std::span<const int64_t> axes = as_int64(p.host_value(1), storage);
  bool reversed[kMaxRank] = {};
  for (int64_t axis : axes) reversed[axis < 0 ? axis + shape.rank() : axis] = true;
  const Strides strides = dense_strides(shape);
  StridedCopy copy(p.output_type(0));
  int64_t offset = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    copy.axis(shape.dim(i), reversed[i] ? -strides[i] : strides[i], strides[i]);
    if (reversed[i]) offset += (shape.dim(i) - 1) * strides[i];
  }
  return one_copy(copy.offsets(offset, 0));
}

template <class T, class Length>
KernelPtr reverse_sequence_kernel(const SequenceLayout& s) {
  const double row_cost = 5 + kMoveCost<T> * static_cast<double>(s.row);
  return make_kernel(
      [s, row_cost](RunContext& c) {
        const std::span<const Length> lengths = c.input(1).values<Length>();
        for (size_t i = 0; i < lengths.size(); ++i) {
          if (lengths[i] >= 0 && lengths[i] <= s.seq_extent) continue;
          throw_bad_length(static_cast<int64_t>(i), lengths[i], s.seq_extent);
        }
        const T* from = elements<T>(c.input(0));
        T* to = elements<T>(c.output(0));
        const int64_t grain = std::max<int64_t>(1, kMoveGrain<T> / std::max<int64_t>(s.row, 1));
        c.parallel_for(s.rows, grain, row_cost, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            const int64_t place = at / s.seq_stride % s.seq_extent;
            const int64_t length =
                lengths[static_cast<size_t>(at / s.batch_stride % s.batch_extent)];
            const int64_t source =
                place < length ? at + (length - 1 - 2 * place) * s.seq_stride : at;
            copy_elements(to + at * s.row, from + source * s.row, s.row);
          }
        });
      },
      10 + row_cost * static_cast<double>(s.rows));
}

KernelPtr prepare_reverse_sequence(const PrepareContext& p) {
  const SequenceLayout s = sequence_layout(p);
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return p.input_type(1) == DType::kInt32 ? reverse_sequence_kernel<T, int32_t>(s)
                                            : reverse_sequence_kernel<T, int64_t>(s);
  });
}

// --- Roll -------------------------------------------------------------------------------------

// Each rolled axis is two pieces, its elements before and after the seam; the copy falls into one
// per combination of pieces.
void add_rolled(const Shape& shape, const int64_t* shifts, int axis, StridedCopy copy, int64_t from,
                int64_t to, std::vector<CopyPlan::Part>& copies) {
  if (axis == shape.rank()) {
    copies.push_back({copy.offsets(from, to).finish()});
    return;
  }
  const int64_t stride = dense_strides(shape)[axis];
  const int64_t extent = shape.dim(axis);
  const int64_t shift = shifts[axis];
  const auto piece = [&](int64_t source, int64_t target, int64_t size) {
    StridedCopy longer = copy;
    longer.axis(size, stride, stride);
    add_rolled(shape, shifts, axis + 1, longer, from + source * stride, to + target * stride,
               copies);
  };
  piece(0, shift, extent - shift);
  if (shift > 0) piece(extent - shift, 0, shift);
}

CopyPlan plan_roll(const PrepareContext& p) {
  const Shape& shape = p.input_shape(0);
  int64_t shifts[kMaxRank] = {};
  std::vector<int64_t> shift_storage(static_cast<size_t>(p.input_shape(1).num_elements()));
  std::vector<int64_t> axis_storage(static_cast<size_t>(p.input_shape(2).num_elements()));
  const std::span<const int64_t> given = as_int64(p.host_value(1), shift_storage);
  const std::span<const int64_t> axes = as_int64(p.host_value(2), axis_storage);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + shape.rank() : axes[k];
    const int64_t extent = shape.dim(static_cast<int>(axis));
    if (extent > 0) shifts[axis] = ((shifts[axis] + given[k] % extent) % extent + extent) % extent;
  }
  CopyPlan plan;
  if (shape.num_elements() > 0)
    add_rolled(shape, shifts, 0, StridedCopy(p.output_type(0)), 0, 0, plan.parts);
  return plan;
}

constexpr CopyOp kCopies[] = {
    {"Transpose", plan_transpose}, {"Tile", plan_tile}, {"BroadcastTo", plan_broadcast_to},
    {"Reverse", plan_reverse},     {"Roll", plan_roll},
};

}  // namespace

void register_layout_kernels(KernelRegistry& r) {
  add_copy_ops(r, kCopies);
  r.add("ConjugateTranspose", {}, prepare_conjugate_transpose);
  r.add("ReverseSequence", {}, prepare_reverse_sequence);
}

}  // namespace treenail::host
