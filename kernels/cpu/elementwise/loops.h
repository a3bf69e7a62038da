// SPDX-License-Identifier: Apache-2.0
// From one definition of an element-wise op (kernels/elementwise/definition.h) to the loops of
// host/elementwise/tile_loops.h, and to the op's step on values in registers (register_steps.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/elementwise/register_steps.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/elementwise/definition.h"
#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/tile_loops.h"

#if defined(__clang__)
#define TN_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define TN_NO_UNROLL _Pragma("GCC unroll 1")
#endif
// Inside a loop over less than one vector: keeps the compiler from vectorising it.
#define TN_STAY_SCALAR asm volatile("")

namespace treenail::cpu {

using elementwise::Tail;
using host::each_binary;
using host::each_unary;
using host::LoopFn;
using host::LoopParams;
using host::Loops;

// A vector of copies of one element: read with step 0 it stands for an array, so one loop serves
// every variant. Reading it costs a load that hides behind the others.
template <class T>
struct Copies {
  alignas(kVecBytes) T lane[kLanes<T>];
  explicit Copies(const void* element) {
    const T x = *static_cast<const T*>(element);
    for (T& l : lane) l = x;
  }
};

// The loops proper. `sa`, `sb`: lanes from one vector to the next, or 0.
template <class Op, class T>
TN_ONE_BODY void run_unary(T* y, const T* a, int64_t n) {
  using V = Vec<T>;
  constexpr int64_t kL = kLanes<T>;
  constexpr int kUnroll = Op::kTail == Tail::kScalar ? 2 : 1;
  for (; n >= kUnroll * kL; n -= kUnroll * kL, a += kUnroll * kL, y += kUnroll * kL) {
    for (int u = 0; u < kUnroll; ++u) store(y + u * kL, Op::apply(load<V>(a + u * kL)));
  }
  if (Op::kTail == Tail::kScalar && n >= kL) {
    store(y, Op::apply(load<V>(a)));
    n -= kL, y += kL, a += kL;
  }
  if constexpr (Op::kTail == Tail::kScalar) {
    for (int64_t k = 0; k < n; ++k) {
      y[k] = Op::apply(a[k]);
      TN_STAY_SCALAR;
    }
  } else {
    if (n > 0) store_part(y, Op::apply(load_part<V>(a, n)), n);
  }
}

template <class Op, class T>
TN_ONE_BODY void run_binary(T* y, const T* a, int64_t sa, const T* b, int64_t sb, int64_t n) {
  using V = Vec<T>;
  constexpr int64_t kL = kLanes<T>;
  constexpr int kUnroll = Op::kTail == Tail::kScalar ? 2 : 1;
  for (; n >= kUnroll * kL; n -= kUnroll * kL, y += kUnroll * kL) {
    for (int u = 0; u < kUnroll; ++u, a += sa, b += sb) {
      store(y + u * kL, Op::apply(load<V>(a), load<V>(b)));
    }
  }
  if (Op::kTail == Tail::kScalar && n >= kL) {
    store(y, Op::apply(load<V>(a), load<V>(b)));
    n -= kL, y += kL, a += sa, b += sb;
  }
  if constexpr (Op::kTail == Tail::kScalar) {
    for (int64_t k = 0; k < n; ++k) {
      y[k] = Op::apply(a[k], b[k]);
      TN_STAY_SCALAR;
    }
  } else {
    if (n > 0) store_part(y, Op::apply(load_part<V>(a, n), load_part<V>(b, n)), n);
  }
}

template <class Op, class T>
void unary_loop(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams&) {
  run_unary<Op>(static_cast<T*>(y), static_cast<const T*>(a), n);
}

template <class Op, class T, unsigned kMask>
void binary_loop(void* y, const void* a, const void* b, const void*, int64_t n, const LoopParams&) {
  constexpr int64_t kL = kLanes<T>;
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  auto* r = static_cast<T*>(y);
  if constexpr (kMask == 1) {
    run_binary<Op>(r, Copies<T>(a).lane, 0, q, kL, n);
  } else if constexpr (kMask == 2) {
    run_binary<Op>(r, p, kL, Copies<T>(b).lane, 0, n);
  } else {
    run_binary<Op>(r, p, kL, q, kL, n);
  }
}

// Loops whose result has another type run over blocks of fixed length, which the compiler
// vectorises as it sees fit: only for operations that give the same bits either way. A block is
// finished before it is stored, so the result may lie over an operand.
inline constexpr int64_t kBlock = 32;

template <class F, class T, class R>
TN_ONE_BODY void run_blocks(R* y, const T* a, int64_t n, F f) {
  for (; n > 0; n -= kBlock, y += kBlock, a += kBlock) {
    T in[kBlock];
    R out[kBlock];
    const int64_t m = n < kBlock ? n : kBlock;
    const T* p = a;
    if (m < kBlock) {
      std::memset(in, 0, sizeof in);
      std::memcpy(in, a, static_cast<size_t>(m) * sizeof(T));
      p = in;
    }
    TN_NO_UNROLL
    for (int64_t k = 0; k < kBlock; ++k) out[k] = f(p[k]);
    std::memcpy(y, out, static_cast<size_t>(m) * sizeof(R));
  }
}

template <class F, class T, class R>
TN_ONE_BODY void run_blocks(R* y, const T* a, int64_t sa, const T* b, int64_t sb, int64_t n, F f) {
  R out[kBlock];
  for (; n >= kBlock; n -= kBlock, y += kBlock, a += sa, b += sb) {
    TN_NO_UNROLL
    for (int64_t k = 0; k < kBlock; ++k) out[k] = f(a[k], b[k]);
    std::memcpy(y, out, sizeof out);
  }
  for (int64_t k = 0; k < n; ++k) {
    y[k] = f(a[k], b[k]);
    TN_STAY_SCALAR;
  }
}

// A block of copies of one element: read with step 0 it stands for an array.
template <class T>
struct BlockOfCopies {
  alignas(64) T element[kBlock];
  BlockOfCopies(const void* one, int64_t n) {
    const T x = *static_cast<const T*>(one);
    for (int64_t k = 0; k < (n < kBlock ? n : kBlock); ++k) element[k] = x;
  }
};

template <class Op, class T, class R>
struct AsFunction {
  TN_INLINE R operator()(T x) const { return Op::apply(x); }
  TN_INLINE R operator()(T x, T y) const { return Op::apply(x, y); }
};

template <class Op, class T, class R>
void block_unary_loop(void* y, const void* a, const void*, const void*, int64_t n,
                      const LoopParams&) {
  run_blocks(static_cast<R*>(y), static_cast<const T*>(a), n, AsFunction<Op, T, R>());
}

template <class Op, class T, class R, unsigned kMask>
void block_binary_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                       const LoopParams&) {
  const AsFunction<Op, T, R> f;
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  auto* r = static_cast<R*>(y);
  if constexpr (kMask == 1) {
    run_blocks(r, BlockOfCopies<T>(a, n).element, 0, q, kBlock, n, f);
  } else if constexpr (kMask == 2) {
    run_blocks(r, p, kBlock, BlockOfCopies<T>(b, n).element, 0, n, f);
  } else {
    run_blocks(r, p, kBlock, q, kBlock, n, f);
  }
}

// Loops by vectors.
template <class Op, class T>
constexpr Loops unary() {
  return {{unary_loop<Op, T>}, unary_forms<Op, T>()};
}
template <class Op, class T>
constexpr Loops binary() {
  return {{binary_loop<Op, T, 0>, binary_loop<Op, T, 1>, binary_loop<Op, T, 2>},
          binary_forms<Op, T>()};
}
// Loops by blocks; R is T or bool.
template <class Op, class T, class R = T>
constexpr Loops block_unary() {
  return {{block_unary_loop<Op, T, R>}, unary_forms<Op, T>()};
}
template <class Op, class T, class R = T>
constexpr Loops block_binary() {
  return {{block_binary_loop<Op, T, R, 0>, block_binary_loop<Op, T, R, 1>,
           block_binary_loop<Op, T, R, 2>},
          binary_forms<Op, T>()};
}
// The same loops with the operands the other way round.
template <LoopFn kLoop>
void swapped_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                  const LoopParams& params) {
  kLoop(y, b, a, nullptr, n, params);
}
template <class Op, class T, class R>
constexpr Loops swapped_block_binary() {
  return {
      {swapped_loop<block_binary_loop<Op, T, R, 0>>, swapped_loop<block_binary_loop<Op, T, R, 2>>,
       swapped_loop<block_binary_loop<Op, T, R, 1>>},
      binary_forms<elementwise::Swapped<Op>, T>()};
}

// The rows of kOps from the lists of kernels/elementwise.
#define TN_TILE_UNARY(op, Definition, T, ns) {#op, dtype_of<T>, unary<Definition, T>(), ns},
#define TN_TILE_BINARY(op, Definition, T, ns) {#op, dtype_of<T>, binary<Definition, T>(), ns},

}  // namespace treenail::cpu
