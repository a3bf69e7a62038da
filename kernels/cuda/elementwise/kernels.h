// SPDX-License-Identifier: Apache-2.0
// From the rows of kernels/elementwise to kernels. All of an arity take the same parameters:
//
//   unary    (int64_t n, const S* a, R* y, double value)
//   binary   (int64_t n, const S* a, const S* b, R* y, double value, Broadcast how)
//   ternary  (int64_t n, const S* a, const S* b, const S* c, R* y, double value, Broadcast how)
//
// n elements of y, which is contiguous as a unary's operand is; `value` is the attribute that the
// definition takes, if it does.
#pragma once

#include "kernels/cuda/elementwise/map.h"
#include "kernels/cuda/elementwise/stored_types.h"
#include "kernels/elementwise/definition.h"
#include "kernels/elementwise/half.h"

namespace treenail::gpu {

// As what an element in memory is computed, and back.
template <class S>
struct Stored {
  using Computed = S;
  TN_DEVICE static S widen(S x) { return x; }
  TN_DEVICE static S narrow(S x) { return x; }
};
template <>
struct Stored<Float16> {
  using Computed = float;
  TN_DEVICE static float widen(Float16 x) { return to_float(x); }
  TN_DEVICE static Float16 narrow(float x) { return to_float16(x); }
};
template <>
struct Stored<BFloat16> {
  using Computed = float;
  TN_DEVICE static float widen(BFloat16 x) { return to_float(x); }
  TN_DEVICE static BFloat16 narrow(float x) { return to_bfloat16(x); }
};
template <class S, class C>
struct StoredInteger {
  using Computed = C;
  TN_DEVICE static C widen(S x) { return x; }
  TN_DEVICE static S narrow(C x) { return static_cast<S>(x); }
};
template <>
struct Stored<int8_t> : StoredInteger<int8_t, int32_t> {};
template <>
struct Stored<uint8_t> : StoredInteger<uint8_t, int32_t> {};
template <>
struct Stored<int16_t> : StoredInteger<int16_t, int32_t> {};
template <>
struct Stored<uint16_t> : StoredInteger<uint16_t, int32_t> {};
template <>
struct Stored<uint32_t> : StoredInteger<uint32_t, int64_t> {};

template <class S>
using Computed = typename Stored<S>::Computed;

template <class Op>
concept TakesValue = Op::kTakesValue;

// A definition on elements as they are stored.
template <class Op, class R, class S>
struct OnStored {
  double value;
  template <class... T>
  TN_DEVICE R operator()(T... x) const {
    if constexpr (TakesValue<Op>) {
      constexpr bool kIsDouble = std::is_same_v<R, bool>;  // a tolerance
      using Value = std::conditional_t<kIsDouble, double, Computed<S>>;
      return Stored<R>::narrow(Op::apply(Stored<T>::widen(x)..., static_cast<Value>(value)));
    } else {
      return Stored<R>::narrow(Op::apply(Stored<T>::widen(x)...));
    }
  }
};

// Attribute approximate, 1 or 0, chooses the second definition.
template <class Accurate, class Approximate>
struct Either {
  static constexpr bool kTakesValue = true;
  TN_DEVICE static float apply(float x, float approximate) {
    return approximate != 0 ? Approximate::apply(x) : Accurate::apply(x);
  }
  TN_DEVICE static float apply(float g, float x, float approximate) {
    return approximate != 0 ? Approximate::apply(g, x) : Accurate::apply(g, x);
  }
};

TN_DEVICE Broadcast contiguous() {
  Broadcast how;
  how.rank = 1;
  how.stride[0][0] = 1;
  return how;
}

template <class Op, class S, class R>
TN_DEVICE void unary(int64_t n, const S* a, R* y, double value) {
  map(n, contiguous(), OnStored<Op, R, S>{value}, y, a);
}
template <class Op, class S, class R>
TN_DEVICE void binary(int64_t n, const S* a, const S* b, R* y, double value, const Broadcast& how) {
  map(n, how, OnStored<Op, R, S>{value}, y, a, b);
}
template <class Op, class S, class R>
TN_DEVICE void ternary(int64_t n, const S* a, const S* b, const S* c, R* y, double value,
                       const Broadcast& how) {
  map(n, how, OnStored<Op, R, S>{value}, y, a, b, c);
}

}  // namespace treenail::gpu

#define TN_DEFINE_UNARY(S, dtype, op, Op, R) \
  TN_KERNEL(op##_##dtype, int64_t n, const S* a, R* y, double value) { unary<Op>(n, a, y, value); }
#define TN_DEFINE_BINARY(S, dtype, op, Op, R)                                                     \
  TN_KERNEL(op##_##dtype, int64_t n, const S* a, const S* b, R* y, double value, Broadcast how) { \
    binary<Op>(n, a, b, y, value, how);                                                           \
  }
#define TN_DEFINE_TERNARY(S, dtype, op, Op, R)                                               \
  TN_KERNEL(op##_##dtype, int64_t n, const S* a, const S* b, const S* c, R* y, double value, \
            Broadcast how) {                                                                 \
    ternary<Op>(n, a, b, c, y, value, how);                                                  \
  }

// For the lists' rows: results of the operands' type, and truth values.
#define TN_SAME_UNARY(S, dtype, op, Op) TN_DEFINE_UNARY(S, dtype, op, Op, S)
#define TN_SAME_BINARY(S, dtype, op, Op) TN_DEFINE_BINARY(S, dtype, op, Op, S)
#define TN_SAME_TERNARY(S, dtype, op, Op) TN_DEFINE_TERNARY(S, dtype, op, Op, S)
#define TN_TRUE_UNARY(S, dtype, op, Op) TN_DEFINE_UNARY(S, dtype, op, Op, bool)
#define TN_TRUE_BINARY(S, dtype, op, Op) TN_DEFINE_BINARY(S, dtype, op, Op, bool)

#define TN_UNARY_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_SAME_UNARY, op, elementwise::Op)
#define TN_BINARY_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_SAME_BINARY, op, elementwise::Op)
#define TN_TERNARY_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_SAME_TERNARY, op, elementwise::Op)
#define TN_QUESTION_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_TRUE_UNARY, op, elementwise::Op)
#define TN_COMPARISON_KERNEL(op, Op, T, ns) TN_STORED_##T(TN_TRUE_BINARY, op, elementwise::Op)
