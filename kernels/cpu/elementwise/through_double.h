// SPDX-License-Identifier: Apache-2.0
// From a function of doubles to the loops of the same function of floats: widened, computed and
// rounded once.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/elementwise/loops.h"
#include "kernels/elementwise/through_double.h"

namespace treenail::cpu {

using elementwise::narrow;
using elementwise::number;
using elementwise::widen;

// Each f maps VecD to VecD; `library` is used for the elements that `f` does not cover (kLimit:
// largest |x|).
template <class Op>
TN_INLINE HalfVecF evaluate(HalfVecF x) {
  const VecD wide = widen(x);
  HalfVecF y = narrow(Op::apply(wide));
  if constexpr (Op::kLimited) {
    if (any(absolute(wide) > number(kMostRadians))) {
      for (int i = 0; i < kLanes<double>; ++i) {
        if (std::fabs(x[i]) > static_cast<float>(kMostRadians)) y[i] = Op::library(x[i]);
      }
    }
  }
  return y;
}

template <class Op>
void unary_through_double(void* y, const void* a, const void*, const void*, int64_t n,
                          const LoopParams&) {
  constexpr int64_t kL = kLanes<double>;
  const auto* p = static_cast<const float*>(a);
  auto* r = static_cast<float*>(y);
  for (; n >= kL; n -= kL, p += kL, r += kL) store(r, evaluate<Op>(load<HalfVecF>(p)));
  if (n > 0) store_part(r, evaluate<Op>(load_part<HalfVecF>(p, n)), n);
}

template <class Op>
struct ThroughDouble {
  static constexpr bool kIsLong = true;
  TN_INLINE static VecF apply(VecF x) {
    HalfVecF half[2];
    std::memcpy(half, &x, sizeof x);
    half[0] = evaluate<Op>(half[0]);
    half[1] = evaluate<Op>(half[1]);
    std::memcpy(&x, half, sizeof x);
    return x;
  }
};
template <class Op>
constexpr Loops loops_through_double() {
  return {{unary_through_double<Op>}, unary_forms<ThroughDouble<Op>, float>()};
}

#define TN_TILE_THROUGH_DOUBLE(op, Definition, T, ns) \
  {#op, dtype_of<T>, loops_through_double<Definition>(), ns},

}  // namespace treenail::cpu
