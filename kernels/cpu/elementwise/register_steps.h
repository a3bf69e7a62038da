// SPDX-License-Identifier: Apache-2.0
// From one definition of an element-wise op (elementwise/definition.h) to the steps of
// register_machine.h. A step gets values A and B as four vectors each in registers, where both
// platforms pass up to eight vector arguments, and ends in a tail call: the compilers make that a
// jump from -O2 on (tests/python/test_register_steps.py looks). Truth values are lanes of ones or
// zeros. Macros, for a structure of vectors would be passed in memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/host/elementwise/register_machine.h"

#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::musttail)
#define TN_TAIL_CALL [[clang::musttail]]
#endif
#endif
#ifndef TN_TAIL_CALL
#define TN_TAIL_CALL
#endif

#define TN_STEP_ARGUMENTS                                                                       \
  const host::RegisterInstruction *i, host::RegisterContext *c, Reg a0, Reg a1, Reg a2, Reg a3, \
      Reg b0, Reg b1, Reg b2, Reg b3
#define TN_NEXT_STEP \
  TN_TAIL_CALL return reinterpret_cast<StepFn>(i[1].step)(i + 1, c, a0, a1, a2, a3, b0, b1, b2, b3)

namespace treenail::cpu {

using Reg = VecF;  // its bits: lanes may be of any type
using StepFn = void (*)(TN_STEP_ARGUMENTS);

// An operand in memory, at the context's block.
struct RegisterMemory {
  const std::byte* at;
  int64_t stride;
  TN_INLINE RegisterMemory(const host::RegisterContext* c, int32_t number)
      : at(c->operand[number].base + c->at * c->operand[number].advance),
        stride(c->operand[number].stride) {}
  TN_INLINE Reg operator[](int k) const { return load<Reg>(at + k * stride); }
};

// Ops with `kTakesValue` get params.value[0], of their own type, as last operand.
template <class Op>
concept TakesValue = Op::kTakesValue;
// Not unrolled: what is long, or calls functions.
template <class Op>
concept IsLong = Op::kIsLong;
template <class Op>
concept Commutes = Op::kCommutes;

// Ops with a shorter way for usual operands: `usual(x)` is set in lanes where apply_usual(x) has
// apply(x)'s bits. A step asks once for its four vectors, so that they share constants in
// registers.
template <class Op, class T>
concept HasUsualWay = requires(Vec<T> x) {
  Op::apply_usual(x);
};

template <class Op, class T, class... R>
TN_INLINE Reg on_lanes(const host::LoopParams& params, R... r) {
  if constexpr (TakesValue<Op>) {
    return bits<Reg>(Op::apply(bits<Vec<T>>(r)..., splat<Vec<T>>(static_cast<T>(params.value[0]))));
  } else {
    return bits<Reg>(Op::apply(bits<Vec<T>>(r)...));
  }
}

template <class Op, class T>
TN_INLINE void apply_one_by_one(const host::LoopParams& params, Reg& a0, Reg& a1, Reg& a2,
                                Reg& a3) {
  Reg a[] = {a0, a1, a2, a3};
  for (int k = 0; k < 4; ++k) {
    a[k] = on_lanes<Op, T>(params, a[k]);
    asm volatile("");  // keeps it a loop
  }
  a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
}

template <class Op, class T>
void unary_step(TN_STEP_ARGUMENTS) {
  if constexpr (HasUsualWay<Op, T>) {
    using V = Vec<T>;
    const auto usual = Op::usual(bits<V>(a0)) & Op::usual(bits<V>(a1)) & Op::usual(bits<V>(a2)) &
                       Op::usual(bits<V>(a3));
    if (__builtin_expect(any(~usual), 0)) {
      apply_one_by_one<Op, T>(i->params, a0, a1, a2, a3);
    } else {
      a0 = bits<Reg>(Op::apply_usual(bits<V>(a0)));
      a1 = bits<Reg>(Op::apply_usual(bits<V>(a1)));
      a2 = bits<Reg>(Op::apply_usual(bits<V>(a2)));
      a3 = bits<Reg>(Op::apply_usual(bits<V>(a3)));
    }
  } else if constexpr (IsLong<Op>) {
    apply_one_by_one<Op, T>(i->params, a0, a1, a2, a3);
  } else {
    a0 = on_lanes<Op, T>(i->params, a0);
    a1 = on_lanes<Op, T>(i->params, a1);
    a2 = on_lanes<Op, T>(i->params, a2);
    a3 = on_lanes<Op, T>(i->params, a3);
  }
  TN_NEXT_STEP;
}

// Where params.value[0] chooses between two.
template <class Op, class Other, class T>
void either_unary_step(TN_STEP_ARGUMENTS) {
  const auto apply = [&]<class F>(F) {
    a0 = on_lanes<F, T>(i->params, a0);
    a1 = on_lanes<F, T>(i->params, a1);
    a2 = on_lanes<F, T>(i->params, a2);
    a3 = on_lanes<F, T>(i->params, a3);
  };
  if (i->params.value[0] != 0) {
    apply(Other{});
  } else {
    apply(Op{});
  }
  TN_NEXT_STEP;
}

// A from A and y.
template <class Op, class T, class Y>
TN_INLINE void apply_binary(const host::LoopParams& params, Reg& a0, Reg& a1, Reg& a2, Reg& a3,
                            const Y& y) {
  if constexpr (IsLong<Op>) {
    Reg a[] = {a0, a1, a2, a3};
    for (int k = 0; k < 4; ++k) {
      a[k] = on_lanes<Op, T>(params, a[k], y[k]);
      asm volatile("");
    }
    a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
  } else {
    a0 = on_lanes<Op, T>(params, a0, y[0]);
    a1 = on_lanes<Op, T>(params, a1, y[1]);
    a2 = on_lanes<Op, T>(params, a2, y[2]);
    a3 = on_lanes<Op, T>(params, a3, y[3]);
  }
}
template <class Op, class T>
void binary_step_ab(TN_STEP_ARGUMENTS) {
  const Reg b[] = {b0, b1, b2, b3};
  apply_binary<Op, T>(i->params, a0, a1, a2, a3, b);
  TN_NEXT_STEP;
}
template <class Op, class T>
void binary_step_am(TN_STEP_ARGUMENTS) {
  apply_binary<Op, T>(i->params, a0, a1, a2, a3, RegisterMemory(c, i->memory[0]));
  TN_NEXT_STEP;
}

template <class Op, class Other, class T>
void either_binary_step_ab(TN_STEP_ARGUMENTS) {
  const Reg b[] = {b0, b1, b2, b3};
  if (i->params.value[0] != 0) {
    apply_binary<Other, T>(i->params, a0, a1, a2, a3, b);
  } else {
    apply_binary<Op, T>(i->params, a0, a1, a2, a3, b);
  }
  TN_NEXT_STEP;
}
template <class Op, class Other, class T>
void either_binary_step_am(TN_STEP_ARGUMENTS) {
  const RegisterMemory m(c, i->memory[0]);
  if (i->params.value[0] != 0) {
    apply_binary<Other, T>(i->params, a0, a1, a2, a3, m);
  } else {
    apply_binary<Op, T>(i->params, a0, a1, a2, a3, m);
  }
  TN_NEXT_STEP;
}

// A from A, y and z.
template <class Op, class T, class Y, class Z>
TN_INLINE void apply_ternary(const host::LoopParams& params, Reg& a0, Reg& a1, Reg& a2, Reg& a3,
                             const Y& y, const Z& z) {
  a0 = on_lanes<Op, T>(params, a0, y[0], z[0]);
  a1 = on_lanes<Op, T>(params, a1, y[1], z[1]);
  a2 = on_lanes<Op, T>(params, a2, y[2], z[2]);
  a3 = on_lanes<Op, T>(params, a3, y[3], z[3]);
}
template <class Op, class T>
void ternary_step_amn(TN_STEP_ARGUMENTS) {
  const RegisterMemory m(c, i->memory[0]), n(c, i->memory[1]);
  apply_ternary<Op, T>(i->params, a0, a1, a2, a3, m, n);
  TN_NEXT_STEP;
}
template <class Op, class T>
void ternary_step_abm(TN_STEP_ARGUMENTS) {
  const Reg b[] = {b0, b1, b2, b3};
  apply_ternary<Op, T>(i->params, a0, a1, a2, a3, b, RegisterMemory(c, i->memory[0]));
  TN_NEXT_STEP;
}
template <class Op, class T>
void ternary_step_amb(TN_STEP_ARGUMENTS) {
  const Reg b[] = {b0, b1, b2, b3};
  apply_ternary<Op, T>(i->params, a0, a1, a2, a3, RegisterMemory(c, i->memory[0]), b);
  TN_NEXT_STEP;
}

// By RegisterForm.
template <class Op, class T>
inline constexpr StepFn kUnarySteps[] = {unary_step<Op, T>};
template <class Op, class T>
inline constexpr StepFn kBinarySteps[] = {binary_step_ab<Op, T>, binary_step_am<Op, T>};
template <class Op, class T>
inline constexpr StepFn kTernarySteps[] = {ternary_step_amn<Op, T>, ternary_step_abm<Op, T>,
                                           ternary_step_amb<Op, T>};

template <class Op, class Other, class T>
inline constexpr StepFn kEitherUnarySteps[] = {either_unary_step<Op, Other, T>};
template <class Op, class Other, class T>
inline constexpr StepFn kEitherBinarySteps[] = {either_binary_step_ab<Op, Other, T>,
                                                either_binary_step_am<Op, Other, T>};

// `lane`: 0 where the op is on truth values alone.
template <class Op, class T>
constexpr host::RegisterForms unary_forms(int lane = sizeof(T)) {
  return {kUnarySteps<Op, T>, lane};
}
template <class Op, class T>
constexpr host::RegisterForms binary_forms(int lane = sizeof(T)) {
  return {kBinarySteps<Op, T>, lane, Commutes<Op>};
}
template <class Op, class Other, class T>
constexpr host::RegisterForms either_unary_forms() {
  return {kEitherUnarySteps<Op, Other, T>, sizeof(T)};
}
template <class Op, class Other, class T>
constexpr host::RegisterForms either_binary_forms() {
  return {kEitherBinarySteps<Op, Other, T>, sizeof(T)};
}
template <class Op, class T>
constexpr host::RegisterForms ternary_forms(int lane = sizeof(T)) {
  return {kTernarySteps<Op, T>, lane};
}

}  // namespace treenail::cpu
