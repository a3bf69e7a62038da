// SPDX-License-Identifier: Apache-2.0
// And, or, exclusive or: of integers bit by bit, and of truth values.
#pragma once

#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

struct And : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a & b;
  }
};
struct Or : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a | b;
  }
};
struct Xor : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a ^ b;
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise
