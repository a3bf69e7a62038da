// SPDX-License-Identifier: Apache-2.0
// A pass of a reduction: along rows, by groups of lanes, or down columns, a thread each. The order
// of additions depends on the shape alone.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/language/numbers.h"
#include "kernels/cuda/reductions/reduce_pass.h"
#include "kernels/cuda/reductions/reductions.h"

namespace treenail::gpu {

template <class T>
struct Sum {
  TN_DEVICE static T identity() { return 0; }
  TN_DEVICE static T map(T x) { return x; }
  TN_DEVICE static T combine(T a, T b) { return a + b; }
};
template <class T>
struct SumOfSquares : Sum<T> {
  TN_DEVICE static T map(T x) { return x * x; }
};
template <class T>
struct Prod : Sum<T> {
  TN_DEVICE static T identity() { return 1; }
  TN_DEVICE static T combine(T a, T b) { return a * b; }
};
// NaN wins.
template <class T>
struct Max : Sum<T> {
  TN_DEVICE static T identity() { return kLowest<T>; }
  TN_DEVICE static T combine(T a, T b) { return a > b || a != a ? a : b; }
};
template <class T>
struct Min : Sum<T> {
  TN_DEVICE static T identity() { return kHighest<T>; }
  TN_DEVICE static T combine(T a, T b) { return a < b || a != a ? a : b; }
};
template <class T>
struct And : Sum<T> {
  TN_DEVICE static T identity() { return 1; }
  TN_DEVICE static T combine(T a, T b) { return a & b; }
};
template <class T>
struct Or : Sum<T> {
  TN_DEVICE static T combine(T a, T b) { return a | b; }
};

template <class T>
TN_DEVICE T finished(const ReducePass& p, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (p.finish == Finish::kDivide) return x / static_cast<T>(p.divisor);
    if (p.finish == Finish::kRoot) return square_root(x);
    if (p.finish == Finish::kHalve) return T(0.5) * x;
  } else if constexpr (sizeof(T) == sizeof(int64_t)) {  // of integers, as sums are: toward zero
    const auto count = static_cast<T>(p.divisor);
    if (p.finish == Finish::kDivide) return count == 0 ? 0 : x / count;
  }
  return x;
}

template <class Op, class T>
TN_DEVICE T entering(const ReducePass& p, T x) {
  return p.mapped != 0 ? x : Op::map(x);
}

template <class Op, class C, class In, class Out>
TN_DEVICE void reduce_rows(const ReducePass& p, const In* x, Out* y) {
  TN_SHARED(C, part, kMostThreads);
  const int64_t groups = threads() / p.lanes, results = p.outer * p.chunks;
  for (int64_t base = block() * groups; base < results; base += blocks() * groups) {
    const int64_t result = base + group_of(p.lanes);
    C sum = Op::identity();
    if (result < results) {
      const int64_t begin = result % p.chunks * p.chunk;
      const int64_t end = begin + p.chunk < p.extent ? begin + p.chunk : p.extent;
      const In* const row = x + result / p.chunks * p.extent;
      for (int64_t i = begin + lane_of(p.lanes); i < end; i += p.lanes)
        sum = Op::combine(sum, entering<Op, C>(p, Stored<In>::widen(row[i])));
    }
    sum = over_group(part, sum, p.lanes, [](C a, C b) { return Op::combine(a, b); });
    if (result < results && lane_of(p.lanes) == 0)
      y[result] = Stored<Out>::narrow(finished(p, sum));
  }
}

template <class Op, class C, class In, class Out>
TN_DEVICE void reduce_columns(const ReducePass& p, const In* x, Out* y) {
  const int64_t results = p.outer * p.chunks * p.inner;
  for (int64_t result = first(); result < results; result += stride()) {
    const int64_t column = result % p.inner, above = result / p.inner;
    const int64_t begin = above % p.chunks * p.chunk;
    const int64_t end = begin + p.chunk < p.extent ? begin + p.chunk : p.extent;
    const In* at = x + (above / p.chunks * p.extent + begin) * p.inner + column;
    C sum = Op::identity();
    for (int64_t i = begin; i < end; ++i, at += p.inner)
      sum = Op::combine(sum, entering<Op, C>(p, Stored<In>::widen(*at)));
    y[result] = Stored<Out>::narrow(finished(p, sum));
  }
}

#define TN_REDUCTION(Op, C, In, in, Out, out)                                        \
  TN_KERNEL(reduce_rows_##Op##_##in##_##out, ReducePass p, const In* x, Out* y) {    \
    reduce_rows<Op<C>, C>(p, x, y);                                                  \
  }                                                                                  \
  TN_KERNEL(reduce_columns_##Op##_##in##_##out, ReducePass p, const In* x, Out* y) { \
    reduce_columns<Op<C>, C>(p, x, y);                                               \
  }
TN_REDUCTIONS(TN_REDUCTION)

}  // namespace treenail::gpu
