// SPDX-License-Identifier: Apache-2.0
// Comparisons and questions with truth values as results, and what is computed of truth values.
// Comparisons of u64 and complex: host/elementwise/elementwise.cc.
#include <cmath>

#include "framework/op/op_def.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

struct Equal {
  static constexpr bool kCommutes = true;
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a == b;
  }
};
struct NotEqual {
  static constexpr bool kCommutes = true;
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a != b;
  }
};
struct Less {
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a < b;
  }
};
struct LessEqual {
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return a <= b;
  }
};
struct IsNan {
  template <class V>
  TN_INLINE static auto apply(V x) {
    return x != x;
  }
};
struct IsInf {
  template <class V>
  TN_INLINE static auto apply(V x) {
    return absolute(x) == splat<V>(ElementOf<V>(HUGE_VALF));
  }
};
struct IsFinite {
  template <class V>
  TN_INLINE static auto apply(V x) {
    return absolute(x) < splat<V>(ElementOf<V>(HUGE_VALF));
  }
};

// Of truth values: single ones, or lanes of ones or zeros.
struct And {
  static constexpr bool kCommutes = true;
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a & b;
  }
};
struct Or {
  static constexpr bool kCommutes = true;
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a | b;
  }
};
struct Not {
  TN_INLINE static bool apply(bool a) { return !a; }
  TN_INLINE static VecI apply(VecI a) { return ~a; }
};
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

// |a - b| < tolerance, the difference taken in T.
template <class T>
void approximate_equal(void* y, const void* a, const void* b, const void*, int64_t n,
                       const LoopParams& params) {
  const double tolerance = params.value[0];
  run_blocks(static_cast<bool*>(y), static_cast<const T*>(a), kBlock, static_cast<const T*>(b),
             kBlock, n, [tolerance](T p, T q) {
               const T low = p < q ? p : q, high = p < q ? q : p;
               return static_cast<double>(wrap_sub(high, low)) < tolerance;
             });
}
template <class T>
constexpr Loops approximate_loops() {
  return {{approximate_equal<T>}};
}
void read_tolerance(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_float("tolerance");
}

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;
constexpr DType kB = DType::kBool;

constexpr host::TileOp kOps[] = {
    {"Equal", kF, block_binary<Equal, float, bool>(), 0.06f},
    {"Equal", kD, block_binary<Equal, double, bool>(), 0.1f},
    {"Equal", kI, block_binary<Equal, int32_t, bool>(), 0.06f},
    {"Equal", kL, block_binary<Equal, int64_t, bool>(), 0.1f},
    {"NotEqual", kF, block_binary<NotEqual, float, bool>(), 0.06f},
    {"NotEqual", kD, block_binary<NotEqual, double, bool>(), 0.1f},
    {"NotEqual", kI, block_binary<NotEqual, int32_t, bool>(), 0.06f},
    {"NotEqual", kL, block_binary<NotEqual, int64_t, bool>(), 0.1f},
    {"Less", kF, block_binary<Less, float, bool>(), 0.06f},
    {"Less", kD, block_binary<Less, double, bool>(), 0.1f},
    {"Less", kI, block_binary<Less, int32_t, bool>(), 0.06f},
    {"Less", kL, block_binary<Less, int64_t, bool>(), 0.1f},
    {"LessEqual", kF, block_binary<LessEqual, float, bool>(), 0.06f},
    {"LessEqual", kD, block_binary<LessEqual, double, bool>(), 0.1f},
    {"LessEqual", kI, block_binary<LessEqual, int32_t, bool>(), 0.06f},
    {"LessEqual", kL, block_binary<LessEqual, int64_t, bool>(), 0.1f},
    {"Greater", kF, swapped_block_binary<Less, float, bool>(), 0.06f},
    {"Greater", kD, swapped_block_binary<Less, double, bool>(), 0.1f},
    {"Greater", kI, swapped_block_binary<Less, int32_t, bool>(), 0.06f},
    {"Greater", kL, swapped_block_binary<Less, int64_t, bool>(), 0.1f},
    {"GreaterEqual", kF, swapped_block_binary<LessEqual, float, bool>(), 0.06f},
    {"GreaterEqual", kD, swapped_block_binary<LessEqual, double, bool>(), 0.1f},
    {"GreaterEqual", kI, swapped_block_binary<LessEqual, int32_t, bool>(), 0.06f},
    {"GreaterEqual", kL, swapped_block_binary<LessEqual, int64_t, bool>(), 0.1f},
    {"IsNan", kF, block_unary<IsNan, float, bool>(), 0.06f},
    {"IsNan", kD, block_unary<IsNan, double, bool>(), 0.1f},
    {"IsInf", kF, block_unary<IsInf, float, bool>(), 0.06f},
    {"IsInf", kD, block_unary<IsInf, double, bool>(), 0.1f},
    {"IsFinite", kF, block_unary<IsFinite, float, bool>(), 0.06f},
    {"IsFinite", kD, block_unary<IsFinite, double, bool>(), 0.1f},
    {"Equal", kB, truth_binary<Equal>(), 0.1f},
    {"NotEqual", kB, truth_binary<NotEqual>(), 0.1f},
    {"LogicalAnd", kB, truth_binary<And>(), 0.1f},
    {"LogicalOr", kB, truth_binary<Or>(), 0.1f},
    {"LogicalNot", kB, truth_unary<Not>(), 0.1f},
    {"ApproximateEqual", kF, approximate_loops<float>(), 0.2f, read_tolerance},
    {"ApproximateEqual", kD, approximate_loops<double>(), 0.2f, read_tolerance},
    {"ApproximateEqual", kI, approximate_loops<int32_t>(), 0.2f, read_tolerance},
    {"ApproximateEqual", kL, approximate_loops<int64_t>(), 0.2f, read_tolerance},
};

}  // namespace

void register_comparison_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
