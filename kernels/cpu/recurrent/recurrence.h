// SPDX-License-Identifier: Apache-2.0
// What the fused recurrences (lstm*.cc, gru*.cc) are made of. Rows of a batch do not depend on each
// other, so a piece of rows runs through all steps with no barrier between them; what a step
// multiplies by is packed once per call, and what does not depend on the step before (the product
// with the input, the gradients of weights) is one product over all rows of all steps. Pieces are
// cut by the batch size alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/host/recurrent/layers.h"
#include "kernels/host/scratch_layout.h"

namespace treenail::cpu {

using host::LayerExtents;
using host::ScratchLayout;

// Inputs and outputs of the op's type T as arrays of C, which is computed with: themselves, or for
// 16-bit types copies in scratch memory. Inputs of another type are left out.
template <class C>
class ComputedArrays {
 public:
  ComputedArrays(const PrepareContext& p, ScratchLayout& layout);
  // Null where the input has no elements.
  const C* input(RunContext& c, int i) const;
  C* output(RunContext& c, int i) const;
  void finish(RunContext& c) const;  // outputs are complete

 private:
  DType dtype_;
  bool copied_;
  std::vector<size_t> inputs_, outputs_;  // offsets of copies
};

// The batch in pieces of rows: enough rows to use the registers well, no more, so that there are
// several pieces.
struct BatchPieces {
  int64_t batch, rows, count;
  explicit BatchPieces(int64_t batch);
  int64_t begin(int64_t piece) const { return piece * rows; }
  int64_t size(int64_t piece) const { return std::min(rows, batch - piece * rows); }
};

// A matrix that every step multiplies by: [depth, columns], or stored transposed.
template <class C>
struct StepMatrix {
  int64_t depth = 0, columns = 0;
  const C* from = nullptr;
  int64_t ld = 0;
  bool transposed = false;
  C* panels = nullptr;  // packed; null where there is one step only, which gains nothing by it

  static constexpr int64_t kWidth = kMicroColumns<C>;
  static int64_t packed_elements(int64_t depth, int64_t columns) {
    return (columns + kWidth - 1) / kWidth * kWidth * depth;
  }
  int64_t num_panels() const { return (columns + kWidth - 1) / kWidth; }
  int64_t panel_columns(int64_t panel) const { return std::min(kWidth, columns - panel * kWidth); }
  void pack(int64_t panel) const;
  // c[rows, the panel's columns] = or += a[rows, depth] times the panel. c points at the row's
  // beginning, not at the panel's columns.
  void multiply(int64_t panel, int64_t rows, const C* a, int64_t lda, C* c, int64_t ldc,
                bool add) const;
};

// Packs all panels of these matrices, each with at least one, on the pool; nothing where they are
// not to be packed.
template <class C>
void pack_matrices(const RunContext& c, std::span<const StepMatrix<C>> matrices);

// Calls f(first unit, count) for the units of a row: a constant count for whole vectors, so that
// load_some and store_some need no test.
template <class C, class F>
TN_INLINE void for_units(int64_t begin, int64_t end, F f) {
  int64_t j = begin;
  for (; j + kLanes<C> <= end; j += kLanes<C>) f(j, std::integral_constant<int64_t, kLanes<C>>{});
  if (j < end) f(j, end - j);
}
template <class C, class N>
TN_INLINE Vec<C> load_some(const C* p, N n) {
  if constexpr (std::is_same_v<N, int64_t>) {
    return load_part<Vec<C>>(p, n);
  } else {
    return load<Vec<C>>(p);
  }
}
template <class C, class N>
TN_INLINE void store_some(C* p, Vec<C> v, N n) {
  if constexpr (std::is_same_v<N, int64_t>) {
    store_part(p, v, n);
  } else {
    store(p, v);
  }
}

// out[columns] = (or +=) the sum over rows of a[row], or of a[row] b[row] where b is given. Each
// column is summed in the order of the rows.
template <class C>
struct ColumnSum {
  int64_t rows, columns;
  const C* a;
  int64_t lda;
  C* out;
  const C* b = nullptr;
  int64_t ldb = 0;
  bool add = false;
};
template <class C>
void sum_columns(RunContext& c, const ColumnSum<C>& sum);

// gradient[input + cell, n] of weights that x beside the state before each step were multiplied by:
// h_prev before the first step, h[t - 1] before the others. `d`, [steps * batch, n]: what arrives
// at their product.
template <class C>
void weights_gradient(RunContext& c, const LayerExtents& e, int64_t steps, int64_t n, const C* x,
                      const C* h_prev, const C* h, const C* d, C* gradient);

// The value of seq_len_max, or `time` for a cell. Errors: InvalidArgument outside [0, time].
int64_t steps_of(RunContext& c, bool sequence, int64_t time);

// Zeros in elements [begin, end).
template <class C>
void zero_from(RunContext& c, C* array, int64_t begin, int64_t end);

// The gradient of a sequence that has nothing to compute: whatever result has elements is zero.
template <class C>
std::unique_ptr<Kernel> zero_gradients(const PrepareContext& p, const ComputedArrays<C>& arrays,
                                       const ScratchLayout& layout, int64_t time);

// Registers the kernels that compute in float and in double for all types.
void add_recurrent(KernelRegistry& r, std::string_view op, PrepareFn in_float, PrepareFn in_double);

}  // namespace treenail::cpu
