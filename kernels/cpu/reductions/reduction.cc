// SPDX-License-Identifier: Apache-2.0
// The loops of reductions: a block of a row to one value, and columns over a block of rows. Within
// a block the order is fixed by its size: several vectors side by side, folded in pairs at the end.
// Which blocks there are: host/reductions/reduce_engine.h.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/host/reductions/reduce_loops.h"

namespace treenail::cpu {
namespace {

// combine(a, b) is associative up to rounding; map() is what an element enters as.
template <class T>
struct Unmapped {
  template <class V>
  TN_INLINE static V map(V x) {
    return x;
  }
};
template <class T>
struct Sum : Unmapped<T> {
  static constexpr T kIdentity = 0;
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    return wrap_add(a, b);
  }
};
template <class T>
struct SumOfSquares : Sum<T> {
  template <class V>
  TN_INLINE static V map(V x) {
    return wrap_mul(x, x);
  }
};
template <class T>
struct Prod : Unmapped<T> {
  static constexpr T kIdentity = 1;
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    return wrap_mul(a, b);
  }
};
template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}
template <class T>
struct Max : Unmapped<T> {  // NaN wins
  static constexpr T kIdentity = lowest<T>();
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    if constexpr (is_float_vec<V>) return ((a > b) | (a != a)) ? a : b;
    return a > b ? a : b;
  }
};
template <class T>
struct Min : Unmapped<T> {
  static constexpr T kIdentity = highest<T>();
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    if constexpr (is_float_vec<V>) return ((a < b) | (a != a)) ? a : b;
    return a < b ? a : b;
  }
};
template <class T>
struct And : Unmapped<T> {
  static constexpr T kIdentity = 1;
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    return a & b;
  }
};
template <class T>
struct Or : Unmapped<T> {
  static constexpr T kIdentity = 0;
  template <class V>
  TN_INLINE static V combine(V a, V b) {
    return a | b;
  }
};

template <class Op, class T>
TN_INLINE T reduce_row(const T* x, int64_t n) {
  using V = Vec256<T>;
  constexpr int64_t kL = kLanesOf<V>;
  T result = Op::kIdentity;
  if (n >= kL) {
    V a = Op::map(load<V>(x));
    x += kL, n -= kL;
    if (n >= 3 * kL) {
      V b = Op::map(load<V>(x)), c = Op::map(load<V>(x + kL)), d = Op::map(load<V>(x + 2 * kL));
      for (x += 3 * kL, n -= 3 * kL; n >= 4 * kL; x += 4 * kL, n -= 4 * kL) {
        a = Op::combine(a, Op::map(load<V>(x)));
        b = Op::combine(b, Op::map(load<V>(x + kL)));
        c = Op::combine(c, Op::map(load<V>(x + 2 * kL)));
        d = Op::combine(d, Op::map(load<V>(x + 3 * kL)));
      }
      a = Op::combine(Op::combine(a, b), Op::combine(c, d));
    }
    for (; n >= kL; x += kL, n -= kL) a = Op::combine(a, Op::map(load<V>(x)));
    result = fold_lanes<Op, T, sizeof(V)>(a);
  }
  for (int64_t i = 0; i < n; ++i) {
    result = Op::combine(result, Op::map(x[i]));
    TN_STAY_SCALAR;
  }
  return result;
}

template <class Op, class T>
void rows_loop(const void* data, int64_t rows, int64_t n, void* out) {
  const auto* x = static_cast<const T*>(data);
  auto* y = static_cast<T*>(out);
  for (int64_t r = 0; r < rows; ++r) y[r] = reduce_row<Op>(x + r * n, n);
}

// y[j] = combine(y[j], the kRows rows from x on, joined in pairs), for whole vectors of columns.
template <class Op, class T, int kRows>
TN_INLINE void join_rows(T* y, const T* x, int64_t stride, int64_t m) {
  using V = Vec<T>;
  constexpr int64_t kL = kLanes<T>;
  for (int64_t j = 0; j + kL <= m; j += kL) {
    V v[kRows];
    for (int r = 0; r < kRows; ++r) v[r] = Op::map(load<V>(x + r * stride + j));
    for (int half = kRows / 2; half > 0; half /= 2) {
      for (int r = 0; r < half; ++r) v[r] = Op::combine(v[r], v[r + half]);
    }
    store(y + j, Op::combine(load<V>(y + j), v[0]));
  }
}

template <class Op, class T>
TN_ONE_BODY void reduce_columns(T* y, const T* x, int64_t stride, int64_t rows, int64_t m) {
  const int64_t whole = m / kLanes<T> * kLanes<T>;
  for (int64_t j = whole; j < m; ++j) {  // the columns left over, one after the other
    T result = Op::kIdentity;
    for (int64_t r = 0; r < rows; ++r) {
      result = Op::combine(result, Op::map(x[r * stride + j]));
      TN_STAY_SCALAR;
    }
    y[j] = result;
  }
  const Vec<T> start = Vec<T>{} + Op::kIdentity;
  for (int64_t j = 0; j < whole; j += kLanes<T>) store(y + j, start);
  for (; rows >= 8; x += 8 * stride, rows -= 8) join_rows<Op, T, 8>(y, x, stride, whole);
  for (; rows > 0; x += stride, --rows) join_rows<Op, T, 1>(y, x, stride, whole);
}

// Rows narrower than a few vectors are taken several at a time, as one row of kWide elements or a
// little less.
constexpr int64_t kWide = 64;

template <class Op>
struct Then : Op {  // combines what was mapped already
  template <class V>
  TN_INLINE static V map(V x) {
    return x;
  }
};

template <class Op, class T>
void columns_loop(const void* data, int64_t stride, int64_t rows, int64_t m, void* out) {
  const auto* x = static_cast<const T*>(data);
  auto* y = static_cast<T*>(out);
  const int64_t group = kWide / m;
  if (stride != m || group < 2 || rows < 2 * group) {
    reduce_columns<Op>(y, x, stride, rows, m);
    return;
  }
  T wide[2 * kWide];
  const int64_t groups = rows / group, rest = rows - groups * group;
  reduce_columns<Op>(wide, x, group * m, groups, group * m);
  int64_t partial = group;
  if (rest > 0) {  // the rows left over are one more partial row
    reduce_columns<Op>(wide + group * m, x + groups * group * m, m, rest, m);
    ++partial;
  }
  reduce_columns<Then<Op>>(y, wide, m, partial, m);
}

template <class Op, class T>
void fill_loop(void* out, int64_t n) {
  std::fill_n(static_cast<T*>(out), n, Op::kIdentity);
}

template <class Op, class T>
constexpr host::ReduceLoops loops() {
  return {rows_loop<Op, T>, columns_loop<Op, T>, fill_loop<Op, T>};
}

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

constexpr host::ReduceOp kOps[] = {
    {"Sum", kF, loops<Sum<float>, float>(), 0.06f},
    {"Sum", kD, loops<Sum<double>, double>(), 0.12f},
    {"Sum", kI, loops<Sum<int32_t>, int32_t>(), 0.06f},
    {"Sum", kL, loops<Sum<int64_t>, int64_t>(), 0.12f},
    {"SumOfSquares", kF, loops<SumOfSquares<float>, float>(), 0.06f},
    {"SumOfSquares", kD, loops<SumOfSquares<double>, double>(), 0.12f},
    {"Prod", kF, loops<Prod<float>, float>(), 0.06f},
    {"Prod", kD, loops<Prod<double>, double>(), 0.12f},
    {"Prod", kI, loops<Prod<int32_t>, int32_t>(), 0.06f},
    {"Prod", kL, loops<Prod<int64_t>, int64_t>(), 0.3f},
    {"Max", kF, loops<Max<float>, float>(), 0.08f},
    {"Max", kD, loops<Max<double>, double>(), 0.15f},
    {"Max", kI, loops<Max<int32_t>, int32_t>(), 0.06f},
    {"Max", kL, loops<Max<int64_t>, int64_t>(), 0.15f},
    {"Min", kF, loops<Min<float>, float>(), 0.08f},
    {"Min", kD, loops<Min<double>, double>(), 0.15f},
    {"Min", kI, loops<Min<int32_t>, int32_t>(), 0.06f},
    {"Min", kL, loops<Min<int64_t>, int64_t>(), 0.15f},
    {"And", DType::kBool, loops<And<uint8_t>, uint8_t>(), 0.03f},
    {"Or", DType::kBool, loops<Or<uint8_t>, uint8_t>(), 0.03f},
};

}  // namespace

void register_reduction_kernels(KernelRegistry&) { host::add_reduce_ops(kOps); }

}  // namespace treenail::cpu
