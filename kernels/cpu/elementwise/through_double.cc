// SPDX-License-Identifier: Apache-2.0
// Float functions by double lanes.
#include "kernels/cpu/elementwise/through_double.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

#if defined(TN_FUSED)
// In float, but for the elements too large for it, which go through double each by itself.
template <class Op>
TN_INLINE VecF evaluate_float(VecF x) {
  VecF y = Op::apply(x);
  const auto large = ~(absolute(x) <= splat<VecF>(kMostFloatRadians));
  if (__builtin_expect(any(large), 0)) {
    y = large ? ThroughDouble<Op>::apply(x) : y;
  }
  return y;
}
template <class Op>
void sine_loop(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams&) {
  constexpr int64_t kWide = kLanes<float>;
  const auto* p = static_cast<const float*>(a);
  auto* r = static_cast<float*>(y);
  for (; n >= kWide; n -= kWide, p += kWide, r += kWide)
    store(r, evaluate_float<Op>(load<VecF>(p)));
  if (n > 0) store_part(r, evaluate_float<Op>(load_part<VecF>(p, n)), n);
}
template <class Op>
struct InFloat {
  static constexpr bool kIsLong = true;
  TN_INLINE static VecF apply(VecF x) { return evaluate_float<Op>(x); }
};
template <class Op>
constexpr Loops sine_loops() {
  return {{sine_loop<Op>}, unary_forms<InFloat<Op>, float>()};
}
#else
template <class Op>
constexpr Loops sine_loops() {
  return loops_through_double<Op>();
}
#endif

constexpr int64_t kL = kLanes<double>;

TN_ONE_BODY void run_power(float* y, const float* a, int64_t sa, const float* b, int64_t sb,
                           int64_t n) {
  for (; n >= kL; n -= kL, y += kL, a += sa, b += sb) {
    store(y, narrow(power(widen(load<HalfVecF>(a)), widen(load<HalfVecF>(b)))));
  }
  if (n > 0) {
    const VecD p = widen(load_part<HalfVecF>(a, n)), q = widen(load_part<HalfVecF>(b, n));
    store_part(y, narrow(power(p, q)), n);
  }
}

template <unsigned kMask>
void power_loop(void* y, const void* a, const void* b, const void*, int64_t n, const LoopParams&) {
  const auto* p = static_cast<const float*>(a);
  const auto* q = static_cast<const float*>(b);
  auto* r = static_cast<float*>(y);
  if constexpr (kMask == 1) {
    run_power(r, Copies<float>(a).lane, 0, q, kL, n);
  } else if constexpr (kMask == 2) {
    run_power(r, p, kL, Copies<float>(b).lane, 0, n);
  } else {
    run_power(r, p, kL, q, kL, n);
  }
}

struct Power {
  static constexpr bool kIsLong = true;
  TN_INLINE static VecF apply(VecF x, VecF y) {
    HalfVecF a[2], b[2];
    std::memcpy(a, &x, sizeof x);
    std::memcpy(b, &y, sizeof y);
    a[0] = narrow(power(widen(a[0]), widen(b[0])));
    a[1] = narrow(power(widen(a[1]), widen(b[1])));
    std::memcpy(&x, a, sizeof x);
    return x;
  }
};
constexpr Loops power_loops() {
  return {{power_loop<0>, power_loop<1>, power_loop<2>}, binary_forms<Power, float>()};
}

#define TN_SINE(op, Definition, T, ns) {#op, dtype_of<T>, sine_loops<Definition>(), ns},
#define TN_POWER(op, Definition, T, ns) {#op, dtype_of<T>, power_loops(), ns},

constexpr host::TileOp kOps[] = {TN_THROUGH_DOUBLE_OPS(TN_TILE_THROUGH_DOUBLE) TN_SINE_OPS(TN_SINE)
                                     TN_POWER_OPS(TN_POWER)};

}  // namespace

void register_through_double_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
}

}  // namespace treenail::cpu
