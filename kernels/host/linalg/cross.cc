// SPDX-License-Identifier: Apache-2.0
// Cross products. Half-width floats are computed in float and rounded once; whole numbers wrap.
#include <complex>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::host {
namespace {

template <class T>
constexpr bool kHalfWidth = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// Signed overflow is undefined in C++.
template <class T>
struct Arithmetic {
  using type = std::conditional_t<kHalfWidth<T>, float, T>;
};
template <class T>
requires std::is_integral_v<T>
struct Arithmetic<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

template <class T>
void cross(const T* x, const T* y, int64_t vectors, T* to) {
  using A = typename Arithmetic<T>::type;
  for (int64_t i = 0; i < vectors; ++i, x += 3, y += 3, to += 3) {
    const A a[] = {static_cast<A>(x[0]), static_cast<A>(x[1]), static_cast<A>(x[2])};
    const A b[] = {static_cast<A>(y[0]), static_cast<A>(y[1]), static_cast<A>(y[2])};
    to[0] = static_cast<T>(a[1] * b[2] - a[2] * b[1]);
    to[1] = static_cast<T>(a[2] * b[0] - a[0] * b[2]);
    to[2] = static_cast<T>(a[0] * b[1] - a[1] * b[0]);
  }
}

std::unique_ptr<Kernel> prepare_cross(const PrepareContext& p) {
  constexpr int64_t kGrain = 8192;
  constexpr double kNs = 3;
  const DType dtype = p.input_type(0);
  const int64_t vectors = p.output_shape(0).num_elements() / 3;
  return make_kernel(
      [=](RunContext& c) {
        dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                 uint32_t, int64_t, uint64_t, std::complex<float>, std::complex<double>>(
            dtype, [&]<class T>() {
              c.parallel_for(vectors, kGrain, kNs, [&](int64_t begin, int64_t end) {
                cross(c.input(0).data<T>() + 3 * begin, c.input(1).data<T>() + 3 * begin,
                      end - begin, c.output(0).data<T>() + 3 * begin);
              });
            });
      },
      kNs * static_cast<double>(vectors));
}

}  // namespace

void register_cross_kernels(KernelRegistry& r) { r.add("Cross", {}, prepare_cross); }

}  // namespace treenail::host
