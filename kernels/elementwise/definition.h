// SPDX-License-Identifier: Apache-2.0
// What an element-wise op is, in one place for all that computes it. A definition is a struct with
//   template <class V> static V apply(V a, ...)      on a vector or a scalar alike, and
//   static constexpr Tail kTail                      how the last elements (less than a vector) are
//   done.
// The files beside hold definitions by family, each with lists of rows: op, definition, element
// type, nanoseconds for an element on one CPU thread. Of the rows the CPU's level libraries make
// loops over vectors and steps on registers (kernels/cpu/elementwise), the GPU plugin kernels that
// compute one number per call (kernels/cuda/elementwise). Half and small integer types come to
// either as the type that they are computed in.
//
// Every file that includes them has its own, unnamed: what a level makes of a definition has no
// name outside the file, as if it had been written there.
#pragma once

#include "kernels/cpu/simd/vec_fma.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

// Body and tail give the same bits for an element: a scalar tail is allowed only for ops that IEEE
// 754 (or integer arithmetic) defines to the bit; others run the vector code on a padded vector.
enum class Tail { kScalar, kPadded };

struct Exact {
  static constexpr Tail kTail = Tail::kScalar;
};
struct Commutative : Exact {
  static constexpr bool kCommutes = true;
};
struct Polynomial {
  static constexpr Tail kTail = Tail::kPadded;
};

template <class V>
TN_INLINE V number(double x) {
  return splat<V>(static_cast<ElementOf<V>>(x));
}

// With the operands the other way round.
template <class Op>
struct Swapped {
  template <class V>
  TN_INLINE static auto apply(V a, V b) {
    return Op::apply(b, a);
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise
