// SPDX-License-Identifier: Apache-2.0
// Comparisons and questions with truth values as results, and what is computed of truth values.
// Comparisons of u64 and complex: host/elementwise/elementwise.cc.
#include "kernels/elementwise/comparison.h"
#include "framework/op/op_def.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

template <class Op>
constexpr Loops truth_binary() {
  Loops loops = each_binary<Op, bool>();
  loops.registers = binary_forms<Op, int32_t>(0);
  return loops;
}
template <class Op>
constexpr Loops truth_unary() {
  Loops loops = each_unary<Op, bool>();
  loops.registers = unary_forms<Op, int32_t>(0);
  return loops;
}

template <class T>
void approximate_equal(void* y, const void* a, const void* b, const void*, int64_t n,
                       const LoopParams& params) {
  const double tolerance = params.value[0];
  run_blocks(static_cast<bool*>(y), static_cast<const T*>(a), kBlock, static_cast<const T*>(b),
             kBlock, n, [tolerance](T p, T q) { return ApproximateEqual::apply(p, q, tolerance); });
}
template <class T>
constexpr Loops approximate_loops() {
  return {{approximate_equal<T>}};
}
void read_tolerance(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_float("tolerance");
}

#define TN_COMPARISON(op, Definition, T, ns) \
  {#op, dtype_of<T>, block_binary<Definition, T, bool>(), ns},
#define TN_SWAPPED(op, Definition, T, ns) \
  {#op, dtype_of<T>, swapped_block_binary<Definition, T, bool>(), ns},
#define TN_QUESTION(op, Definition, T, ns) \
  {#op, dtype_of<T>, block_unary<Definition, T, bool>(), ns},
#define TN_TRUTH_BINARY(op, Definition, T, ns) {#op, dtype_of<T>, truth_binary<Definition>(), ns},
#define TN_TRUTH_UNARY(op, Definition, T, ns) {#op, dtype_of<T>, truth_unary<Definition>(), ns},
#define TN_APPROXIMATE(op, Definition, T, ns) \
  {#op, dtype_of<T>, approximate_loops<T>(), ns, read_tolerance},

constexpr host::TileOp kOps[] = {
    TN_COMPARISON_OPS(TN_COMPARISON) TN_SWAPPED_COMPARISON_OPS(TN_SWAPPED)
        TN_QUESTION_OPS(TN_QUESTION) TN_TRUTH_BINARY_OPS(TN_TRUTH_BINARY)
            TN_TRUTH_UNARY_OPS(TN_TRUTH_UNARY) TN_APPROXIMATE_OPS(TN_APPROXIMATE)};

}  // namespace

void register_comparison_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
