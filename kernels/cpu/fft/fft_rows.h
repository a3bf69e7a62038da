// SPDX-License-Identifier: Apache-2.0
// Complex numbers of Fourier transforms in registers. A row holds kRowLanes real parts, then as
// many imaginary parts: the same element of so many transforms, which run side by side and never
// meet, so that every length is computed in whole vectors. Loads and stores between rows and
// interleaved complex arrays are here; the transforms: fft_lanes.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/simd/complex_vec.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

// At least a cache line per row: strided access wastes nothing.
template <class T>
inline constexpr int kRowLanes = std::max<int>(kLanes<T>, 32 / static_cast<int>(sizeof(T)));
template <class T>
inline constexpr int kRow = 2 * kRowLanes<T>;
template <class T>
inline constexpr int kRowParts = kRowLanes<T> / kLanes<T>;

template <class T>
TN_INLINE ComplexVec<T> load_row(const T* row, int part) {
  return {load<Vec<T>>(row + part * kLanes<T>),
          load<Vec<T>>(row + kRowLanes<T> + part * kLanes<T>)};
}
template <class T>
TN_INLINE void store_row(T* row, int part, ComplexVec<T> v) {
  store(row + part * kLanes<T>, v.re);
  store(row + kRowLanes<T> + part * kLanes<T>, v.im);
}

// Lane l of the result is lane Index::of(l) of a (0 ... n - 1) or b (n ... 2n - 1).
template <class T, class Index>
TN_INLINE Vec<T> pick(Vec<T> a, Vec<T> b) {
  return [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline))->Vec<T> {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, Index::of(L)...);
#else
    using Lane = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    return __builtin_shuffle(a, b, Vec<Lane>{Index::of(L)...});
#endif
  }
  (std::make_integer_sequence<int, kLanes<T>>{});
}

template <int kOdd>
struct EveryOther {
  static constexpr int of(int lane) { return 2 * lane + kOdd; }
};
template <int kFrom, int kCount>
struct Alternating {
  static constexpr int of(int lane) { return kFrom + lane / 2 + (lane % 2) * kCount; }
};
template <int kCount>
struct Backwards {
  static constexpr int of(int lane) { return kCount - 1 - lane; }
};

// kLanes complex numbers of an interleaved array.
template <class T>
TN_INLINE ComplexVec<T> load_complex(const T* p) {
  const Vec<T> a = load<Vec<T>>(p), b = load<Vec<T>>(p + kLanes<T>);
  return {pick<T, EveryOther<0>>(a, b), pick<T, EveryOther<1>>(a, b)};
}
template <class T>
TN_INLINE void store_complex(T* p, ComplexVec<T> v) {
  store(p, pick<T, Alternating<0, kLanes<T>>>(v.re, v.im));
  store(p + kLanes<T>, pick<T, Alternating<kLanes<T> / 2, kLanes<T>>>(v.re, v.im));
}
template <class T>
TN_INLINE ComplexVec<T> backwards(ComplexVec<T> v) {
  return {pick<T, Backwards<kLanes<T>>>(v.re, v.re), pick<T, Backwards<kLanes<T>>>(v.im, v.im)};
}

// Where real and imaginary parts lie in memory for one direction: an inverse transform is a forward
// one with the two exchanged on the way in and out.
template <class T>
TN_INLINE ComplexVec<T> exchanged_if(bool inverse, ComplexVec<T> v) {
  return inverse ? ComplexVec<T>{v.im, v.re} : v;
}

// --- Lanes that are neighbours in memory -------------------------------------------------------

// One row from `lanes` <= kRowLanes complex numbers; further lanes become zero.
template <class T>
TN_INLINE void load_neighbours(const T* from, int64_t lanes, bool inverse, T* row) {
  if (lanes == kRowLanes<T>) {
    for (int part = 0; part < kRowParts<T>; ++part) {
      store_row<T>(row, part,
                   exchanged_if<T>(inverse, load_complex<T>(from + 2 * part * kLanes<T>)));
    }
    return;
  }
  for (int64_t l = 0; l < kRowLanes<T>; ++l) {
    row[l] = l < lanes ? from[2 * l + (inverse ? 1 : 0)] : T(0);
    row[kRowLanes<T> + l] = l < lanes ? from[2 * l + (inverse ? 0 : 1)] : T(0);
  }
}

template <class T>
TN_INLINE void store_neighbours(const T* row, int64_t lanes, bool inverse, T scale, T* to) {
  if (lanes == kRowLanes<T>) {
    const Vec<T> factor = splat<Vec<T>>(scale);
    for (int part = 0; part < kRowParts<T>; ++part) {
      const ComplexVec<T> v = exchanged_if<T>(inverse, load_row<T>(row, part));
      store_complex<T>(to + 2 * part * kLanes<T>, {v.re * factor, v.im * factor});
    }
    return;
  }
  for (int64_t l = 0; l < lanes; ++l) {
    to[2 * l + (inverse ? 1 : 0)] = row[l] * scale;
    to[2 * l + (inverse ? 0 : 1)] = row[kRowLanes<T> + l] * scale;
  }
}

// --- Lanes that are lines of their own ---------------------------------------------------------

// `count` consecutive numbers of each of `lanes` lines, `stride` apart: number i of line l becomes
// rows[i][l], where rows(i) says where those kRowLanes numbers go. Further lanes become zero.
template <class T, class Rows>
TN_INLINE void gather_lines(const T* from, int64_t stride, int64_t count, int64_t lanes,
                            Rows&& rows) {
  constexpr int n = kLanes<T>;
  for (int part = 0; part < kRowParts<T>; ++part) {
    const int64_t here = std::clamp<int64_t>(lanes - part * n, 0, n);
    const T* const first = from + part * n * stride;
    for (int64_t i = 0; i < count; i += n) {
      const int64_t some = std::min<int64_t>(n, count - i);
      Vec<T> square[n];
      for (int l = 0; l < n; ++l) {
        const T* p = first + l * stride + i;
        square[l] = l >= here ? Vec<T>{} : some == n ? load<Vec<T>>(p) : load_part<Vec<T>>(p, some);
      }
      transpose<T>(square);
      for (int64_t k = 0; k < some; ++k) store(rows(i + k) + part * n, square[k]);
    }
  }
}

// The other way, each number multiplied by `scale`; nothing is written for further lanes.
template <class T, class Rows>
TN_INLINE void scatter_lines(Rows&& rows, int64_t stride, int64_t count, int64_t lanes, T scale,
                             T* to) {
  constexpr int n = kLanes<T>;
  const Vec<T> factor = splat<Vec<T>>(scale);
  for (int part = 0; part < kRowParts<T>; ++part) {
    const int64_t here = std::clamp<int64_t>(lanes - part * n, 0, n);
    T* const first = to + part * n * stride;
    for (int64_t i = 0; i < count; i += n) {
      const int64_t some = std::min<int64_t>(n, count - i);
      Vec<T> square[n] = {};
      for (int64_t k = 0; k < some; ++k) {
        square[k] = load<Vec<T>>(rows(i + k) + part * n) * factor;
      }
      transpose<T>(square);
      for (int64_t l = 0; l < here; ++l) {
        T* p = first + l * stride + i;
        if (some == n) {
          store(p, square[l]);
        } else {
          store_part(p, square[l], some);
        }
      }
    }
  }
}

}  // namespace treenail::cpu
