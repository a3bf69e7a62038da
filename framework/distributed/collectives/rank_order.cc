// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/rank_order.h"

#include <algorithm>
#include <type_traits>

#include "framework/base/fp_environment.h"

namespace treenail {
namespace {

constexpr int64_t kTile = 2048;  // elements: partial results stay in the first cache

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// Sums and products of signed integers wrap around, as everywhere in Treenail.
template <class T, bool = std::is_integral_v<T>>
struct Arithmetic {
  using type = T;
};
template <class T>
struct Arithmetic<T, true> {
  // Wide enough to be no int after promotion.
  using type = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
};

struct Sum {
  template <class T>
  static T apply(const T& a, const T& b) {
    using A = typename Arithmetic<T>::type;
    return static_cast<T>(static_cast<A>(a) + static_cast<A>(b));
  }
};
struct Product {
  template <class T>
  static T apply(const T& a, const T& b) {
    using A = typename Arithmetic<T>::type;
    if constexpr (kIsComplex<T>) {
      return T(a.real() * b.real() - a.imag() * b.imag(),
               a.real() * b.imag() + a.imag() * b.real());
    } else {
      return static_cast<T>(static_cast<A>(a) * static_cast<A>(b));
    }
  }
};
// A NaN goes on.
struct Min {
  template <class T>
  static T apply(const T& a, const T& b) {
    return a < b || a != a ? a : b;
  }
};
struct Max {
  template <class T>
  static T apply(const T& a, const T& b) {
    return a > b || a != a ? a : b;
  }
};

// By blocks of a fixed size, and through memory that is nobody else's: so compilers use vectors
// without asking whether the arrays overlap. `out` may be `a`.
template <class Op, class T>
void combine(const T* a, const T* b, T* out, int64_t n) {
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    T block[kBlock];
    for (int64_t j = 0; j < kBlock; ++j) block[j] = Op::template apply<T>(a[i + j], b[i + j]);
    for (int64_t j = 0; j < kBlock; ++j) out[i + j] = block[j];
  }
  for (; i < n; ++i) out[i] = Op::template apply<T>(a[i], b[i]);
}

// The first two ranks in one pass, so that two ranks read and write each byte once.
template <class Op, class T>
void reduce_tile(std::span<const std::byte* const> from, int64_t at, T* out, int64_t n) {
  const auto rank = [&](size_t r) { return reinterpret_cast<const T*>(from[r]) + at; };
  if (from.size() == 1) std::copy_n(rank(0), n, out);
  for (size_t r = 1; r < from.size(); ++r) combine<Op>(r == 1 ? rank(0) : out, rank(r), out, n);
}

template <class Op, class T>
void reduce_halves(std::span<const std::byte* const> from, int64_t at, T* out, int64_t n,
                   bool mean) {
  float sums[kTile];
  for (size_t r = 0; r < from.size(); ++r) {
    const T* const values = reinterpret_cast<const T*>(from[r]) + at;
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<float>(values[i]);
      sums[i] = r == 0 ? value : Op::template apply<float>(sums[i], value);
    }
  }
  const auto ranks = static_cast<float>(from.size());
  for (int64_t i = 0; i < n; ++i) out[i] = T(mean ? sums[i] / ranks : sums[i]);
}

template <class Op, class T>
void reduce(std::span<const std::byte* const> from, std::byte* to, int64_t elements, bool mean) {
  for (int64_t at = 0; at < elements; at += kTile) {
    const int64_t n = std::min(kTile, elements - at);
    T* const out = reinterpret_cast<T*>(to) + at;
    if constexpr (kIsHalf<T>) {
      reduce_halves<Op>(from, at, out, n, mean);
    } else {
      reduce_tile<Op>(from, at, out, n);
      if constexpr (std::is_floating_point_v<T> || kIsComplex<T>) {
        using Real = decltype(std::abs(T()));
        if (mean) {
          for (int64_t i = 0; i < n; ++i) out[i] /= static_cast<Real>(from.size());
        }
      }
    }
  }
}

template <class T>
void reduce_as(Reduction reduction, std::span<const std::byte* const> from, std::byte* out,
               int64_t elements) {
  const bool mean = reduction == Reduction::kMean;
  if (reduction == Reduction::kProduct) return reduce<Product, T>(from, out, elements, false);
  if constexpr (!kIsComplex<T>) {
    if (reduction == Reduction::kMin) return reduce<Min, T>(from, out, elements, false);
    if (reduction == Reduction::kMax) return reduce<Max, T>(from, out, elements, false);
  }
  reduce<Sum, T>(from, out, elements, mean);
}

}  // namespace

bool can_reduce(DType dtype, Reduction reduction) {
  if (is_complex(dtype)) return reduction != Reduction::kMin && reduction != Reduction::kMax;
  return is_floating(dtype) || (is_integer(dtype) && reduction != Reduction::kMean);
}

void reduce_in_rank_order(DType dtype, Reduction reduction, std::span<const std::byte* const> from,
                          std::byte* out, int64_t elements) {
  const FpEnvironment ieee;
  dispatch<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
           uint32_t, uint64_t, std::complex<float>, std::complex<double>>(
      dtype, [&]<class T>() { reduce_as<T>(reduction, from, out, elements); });
}

}  // namespace treenail
