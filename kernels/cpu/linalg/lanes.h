// SPDX-License-Identifier: Apache-2.0
// Small matrices, one per lane of a vector: element e of kLanes matrices is one vector, and every
// step of an algorithm is done for all of them. A matrix's bits do not depend on the lane it is in,
// nor on its neighbours.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/linalg/lane_number.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/host/large_outputs.h"
#include "kernels/host/linalg/dense.h"

namespace treenail::cpu {

// Beyond this order, and this many columns of right sides, a matrix is worked on by itself.
inline constexpr int64_t kMostLaneRows = 16;
inline constexpr int64_t kMostLaneColumns = 32;

template <class T>
inline constexpr RealOf<T> kRounding = std::numeric_limits<RealOf<T>>::epsilon();

// The vector of as many Ts as V has lanes.
template <class T, class V>
using AsManyAs = typename VecType<T, kLanesOf<V>* static_cast<int>(sizeof(T))>::type;

// to[e] holds element e of the matrices, of so many elements, that begin at place(l) for each lane
// l, widened where the lanes' numbers are wider.
template <class Place, class V>
void pack_from(const Place& place, int64_t elements, V* to) {
  constexpr int lanes = kLanesOf<V>;
  using T = std::remove_cvref_t<decltype(*place(0))>;
  const T* matrix[lanes];
  for (int l = 0; l < lanes; ++l) matrix[l] = place(l);
  int64_t e = 0;
  for (; e + lanes <= elements; e += lanes) {
    V square[lanes];
    unroll<lanes>([&](auto l) __attribute__((always_inline)) {
      __builtin_prefetch(matrix[l] + e + lanes * elements);  // the next group's
      square[l] = __builtin_convertvector(load<AsManyAs<T, V>>(matrix[l] + e), V);
    });
    transpose<ElementOf<V>>(square);
    unroll<lanes>([&](auto l) __attribute__((always_inline)) { to[e + l] = square[l]; });
  }
  for (; e < elements; ++e) {
    for (int l = 0; l < lanes; ++l) to[e][l] = matrix[l][e];
  }
}
// Complex numbers: their parts are elements next to each other, in lanes as in tensors.
template <class Place, class W>
void pack_from(const Place& place, int64_t elements, ComplexVec<W>* to) {
  static_assert(sizeof(ComplexVec<W>) == 2 * sizeof(Vec<W>));
  using R = typename std::remove_cvref_t<decltype(*place(0))>::value_type;
  pack_from([&](int l) { return reinterpret_cast<const R*>(place(l)); }, 2 * elements,
            reinterpret_cast<Vec<W>*>(to));
}

// Of `count` matrices one after the other; the lanes that are left repeat the last one.
template <class T, class L>
void pack_lanes(const T* from, int64_t count, int64_t elements, L* to) {
  pack_from([=](int l) { return from + std::min<int64_t>(l, count - 1) * elements; }, elements, to);
}

// Whether matrices of so many elements from there on are stored past the caches.
template <class T>
bool streams_lanes(const T* to, int64_t matrices, int64_t elements) {
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(T));
  return matrices * bytes >= host::kLeastStreamedBytes && bytes % kVecBytes == 0 &&
         reinterpret_cast<uintptr_t>(to) % kVecBytes == 0;
}

// Streamed ones are no wider in lanes than in memory.
template <class V, class T>
void unpack_lanes(const V* from, int64_t count, int64_t elements, T* to, bool streaming = false) {
  constexpr int lanes = kLanesOf<V>;
  int64_t e = 0;
  for (; e + lanes <= elements; e += lanes) {
    V square[lanes];
    unroll<lanes>([&](auto l) __attribute__((always_inline)) { square[l] = from[e + l]; });
    transpose<ElementOf<V>>(square);
    const auto put = [&](int64_t l) __attribute__((always_inline)) {
      store(to + l * elements + e, __builtin_convertvector(square[l], AsManyAs<T, V>));
    };
    if (count == lanes && streaming) {
      unroll<lanes>([&](auto l) __attribute__((always_inline)) {
        stream(to + l * elements + e, square[l]);
      });
    } else if (count == lanes) {
      unroll<lanes>(put);
    } else {
      for (int64_t l = 0; l < count; ++l) put(l);
    }
  }
  for (; e < elements; ++e) {
    for (int64_t l = 0; l < count; ++l) to[l * elements + e] = static_cast<T>(from[e][l]);
  }
}
template <class W, class R>
void unpack_lanes(const ComplexVec<W>* from, int64_t count, int64_t elements, std::complex<R>* to,
                  bool streaming = false) {
  unpack_lanes(reinterpret_cast<const Vec<W>*>(from), count, 2 * elements, reinterpret_cast<R*>(to),
               streaming);
}

template <class L, class M>
TN_INLINE void exchange_where(M mask, L& a, L& b) {
  const L was = a;
  a = choose(mask, b, a);
  b = choose(mask, was, b);
}

// The largest absolute value of a part, and which lanes hold NaN or infinity.
template <class T>
LaneReal<T> largest_of(const LaneNumber<T>* a, int64_t count, LaneMask<T>* not_finite) {
  using R = LaneReal<T>;
  R largest = R{}, nothing = R{};
  for (int64_t i = 0; i < count; ++i) {
    largest = greater_of(largest_part(a[i]), largest);
    nothing += size_of(a[i]) * R{};
  }
  *not_finite = nothing != R{};
  return largest;
}

// to = a b, of m x inner and inner x k numbers.
template <class L>
void multiply(const L* a, const L* b, int64_t m, int64_t inner, int64_t k, L* to) {
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < k; ++c) {
      L sum = L{};
      for (int64_t i = 0; i < inner; ++i) sum = mul_add(a[r * inner + i], b[i * k + c], sum);
      to[r * k + c] = sum;
    }
  }
}
// to = a^H b, of inner x m and inner x k numbers.
template <class L>
void multiply_adjoint(const L* a, const L* b, int64_t m, int64_t inner, int64_t k, L* to) {
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < k; ++c) {
      L sum = L{};
      for (int64_t i = 0; i < inner; ++i) {
        sum = mul_add(conjugate(a[i * m + r]), b[i * k + c], sum);
      }
      to[r * k + c] = sum;
    }
  }
}

template <class L>
void take_adjoint(L* a, int64_t n) {
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < r; ++c) {
      const L upper = a[c * n + r];
      a[c * n + r] = conjugate(a[r * n + c]);
      a[r * n + c] = conjugate(upper);
    }
    a[r * n + r] = conjugate(a[r * n + r]);
  }
}

enum class Side { kBelow, kAbove };
// Which matrices have nothing but zeros on that side of the diagonal.
template <class L>
auto zeros_beside(const L* a, int64_t n, Side side) {
  auto zeros = ~decltype(is_zero(a[0])){};
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < r; ++c) {
      zeros &= is_zero(side == Side::kAbove ? a[c * n + r] : a[r * n + c]);
    }
  }
  return zeros;
}
template <class L, class M>
void transpose_where(M where, L* a, int64_t n) {
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < r; ++c) exchange_where(where, a[r * n + c], a[c * n + r]);
  }
}

// Matrices with at least as many rows as columns: these or, where they are wide, their adjoints.
template <class T, class L>
void pack_upright(const T* from, int64_t count, const host::MatrixBatch& m, L* to) {
  if (m.rows >= m.columns) return pack_lanes(from, count, m.elements(), to);
  L a[kMostLaneRows * kMostLaneRows];
  pack_lanes(from, count, m.elements(), a);
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t c = 0; c < m.columns; ++c) to[c * m.rows + r] = conjugate(a[r * m.columns + c]);
  }
}

template <class T>
void set_identity(LaneNumber<T>* a, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) a[r * columns + c] = constant<T>(r == c ? 1 : 0);
  }
}

// body(first, count) for each kGroups groups of matrices, the last of them fewer.
template <class T, int kGroups = 1, class Body>
void each_group(const RunContext& c, int64_t matrices, double cost_ns, const Body& body) {
  constexpr double kPieceNs = 40000;
  constexpr int64_t kMatrices = kGroups * kGroup<T>;
  const auto grain = static_cast<int64_t>(std::clamp(kPieceNs / cost_ns, 1.0, 1e6));
  c.parallel_for((matrices + kMatrices - 1) / kMatrices, grain, cost_ns,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i * kMatrices;
                     body(first, std::min(kMatrices, matrices - first));
                   }
                   end_stream();
                 });
}

// Two groups of matrices; where there is but one, the other repeats it.
template <class T>
struct Halves {
  int64_t first[2], count[2];
  int groups;
  Halves(int64_t begin, int64_t matrices) : groups(matrices > kGroup<T> ? 2 : 1) {
    first[0] = begin;
    count[0] = std::min<int64_t>(matrices, kGroup<T>);
    first[1] = groups == 2 ? begin + kGroup<T> : begin;
    count[1] = groups == 2 ? matrices - kGroup<T> : count[0];
  }
};

// Throws for the first of the `count` lanes that is set in a comparison's result.
template <class M>
void refuse_lanes(M unsuitable, int64_t count, int64_t first, const char* words,
                  const Shape& batch) {
  if (!any(unsuitable)) return;
  for (int64_t l = 0; l < count; ++l) {
    if (unsuitable[l] != 0) throw host::unsuitable_matrix(words, batch, first + l);
  }
}

// Nanoseconds of a group: so many vectors packed and unpacked, so many multiply-adds.
constexpr double group_cost(double vectors, double work) { return 20 + 2 * vectors + work; }

}  // namespace treenail::cpu
