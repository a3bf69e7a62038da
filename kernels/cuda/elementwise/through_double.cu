// SPDX-License-Identifier: Apache-2.0
// Float functions computed in double and rounded once, sines in float where that is exact enough;
// Bessel functions, the gamma function's
// relatives and quantiles.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/bessel.h"
#include "kernels/elementwise/gamma.h"
#include "kernels/elementwise/quantiles.h"
#include "kernels/elementwise/through_double.h"

namespace treenail::gpu {

using elementwise::narrow;
using elementwise::widen;

template <class Op>
struct ThroughDouble {
  TN_DEVICE static float apply(float x) {
    if constexpr (Op::kLimited) {
      if (absolute(x) > static_cast<float>(kMostRadians)) return Op::library(x);
    }
    return narrow(Op::apply(widen(x)));
  }
};
template <class Op>
struct InFloat {
  TN_DEVICE static float apply(float x) {
    return absolute(x) <= kMostFloatRadians ? Op::apply(x) : ThroughDouble<Op>::apply(x);
  }
};
struct Power {
  TN_DEVICE static float apply(float x, float y) {
    return narrow(elementwise::power(widen(x), widen(y)));
  }
};

#define TN_THROUGH_DOUBLE_KERNEL(op, Op, T, ns) \
  TN_STORED_##T(TN_SAME_UNARY, op, ThroughDouble<elementwise::Op>)
#define TN_SINE_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_SAME_UNARY, op, InFloat<elementwise::Op>)
#define TN_POWER_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_SAME_BINARY, op, Op)

TN_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE_KERNEL)
TN_SINE_OPS(TN_SINE_KERNEL)
TN_POWER_OPS(TN_POWER_KERNEL)
TN_BESSEL_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE_KERNEL)
TN_BESSEL_OPS(TN_UNARY_KERNEL)
TN_GAMMA_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE_KERNEL)
TN_GAMMA_OPS(TN_UNARY_KERNEL)
TN_QUANTILE_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE_KERNEL)
TN_QUANTILE_OPS(TN_UNARY_KERNEL)

}  // namespace treenail::gpu
