// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/accumulate.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "framework/base/function_ref.h"
#include "framework/base/thread_pool.h"
#include "framework/tensor/half.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;  // elements of one piece
constexpr double kNsPerElement = 0.5;

// piece(begin, end) over [0, n), by n alone.
void over_pieces(int64_t n, FunctionRef<void(int64_t, int64_t)> piece) {
  if (n <= kGrain) return piece(0, n);
  ThreadPool::instance().run_chunks(
      (n - 1) / kGrain + 1, [&](int64_t i) { piece(i * kGrain, std::min(n, (i + 1) * kGrain)); },
      kNsPerElement * static_cast<double>(n), nullptr);
}

template <class F>
void dispatch_number(DType dtype, F&& f) {
  dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
           int64_t, uint64_t, std::complex<float>, std::complex<double>>(dtype, f);
}

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class T>
T sum(T a, T b) {
  if constexpr (is_half<T>) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T quotient(T a, int64_t divisor) {
  if constexpr (is_half<T>) {
    return T(static_cast<float>(a) / static_cast<float>(divisor));
  } else if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(static_cast<Wide>(a) / static_cast<Wide>(divisor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a / static_cast<T>(divisor);
  } else {
    return a / static_cast<typename T::value_type>(divisor);
  }
}

}  // namespace

void add_elements(DType dtype, void* to, const void* from, int64_t n) {
  dispatch_number(dtype, [&]<class T>() {
    over_pieces(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        static_cast<T*>(to)[i] = sum(static_cast<T*>(to)[i], static_cast<const T*>(from)[i]);
      }
    });
  });
}

void divide_elements(DType dtype, void* to, int64_t n, int64_t divisor) {
  dispatch_number(dtype, [&]<class T>() {
    over_pieces(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        static_cast<T*>(to)[i] = quotient(static_cast<T*>(to)[i], divisor);
      }
    });
  });
}

}  // namespace treenail
