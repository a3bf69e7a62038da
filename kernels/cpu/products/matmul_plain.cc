// SPDX-License-Identifier: Apache-2.0
// Matrix products of integers (wrapping around) and complex elements. Complex ones go to BLAS where
// there is one; without it, and for integers always, rows of B scaled by elements of A are added
// up, in the order of k.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/products/batch_product.h"
#include "kernels/cpu/products/blas.h"
#include "kernels/cpu/products/matmul.h"

namespace treenail::cpu {
namespace {

template <class T>
inline constexpr bool is_complex_type = !std::is_arithmetic_v<T>;

// c[0:n] += a * b[0:n]. Short integers would be promoted to int, whose overflow is not defined.
template <class U>
requires std::is_unsigned_v<U>
void add_scaled(U a, const U* b, U* c, int64_t n) {
  using Wide = std::common_type_t<U, unsigned>;
  for (int64_t j = 0; j < n; ++j) c[j] = static_cast<U>(c[j] + Wide{a} * Wide{b[j]});
}
// Spelt out: std::complex's product re-examines every NaN.
template <class F>
void add_scaled(std::complex<F> a, const std::complex<F>* b, std::complex<F>* c, int64_t n) {
  const F re = a.real(), im = a.imag();
  const F* from = reinterpret_cast<const F*>(b);
  F* to = reinterpret_cast<F*>(c);
  for (int64_t j = 0; j < n; ++j) {
    to[2 * j] += re * from[2 * j] - im * from[2 * j + 1];
    to[2 * j + 1] += re * from[2 * j + 1] + im * from[2 * j];
  }
}

template <class T>
T adjoint_of(T x, bool conjugate) {
  if constexpr (is_complex_type<T>) return conjugate ? std::conj(x) : x;
  return x;
}

// Rows [m0, m1) of one product.
template <class T>
void plain_rows(const Product<T>& p, bool conjugate, int64_t m0, int64_t m1) {
  constexpr int64_t kColumns = 256;
  for (int64_t j0 = 0; j0 < p.n; j0 += kColumns) {
    const int64_t columns = std::min(kColumns, p.n - j0);
    for (int64_t i = m0; i < m1; ++i) {
      T* const to = p.c + i * p.ldc + j0;
      std::fill_n(to, columns, T(0));
      for (int64_t k = 0; k < p.k; ++k) {
        const T a = p.trans_a ? adjoint_of(p.a[k * p.lda + i], conjugate) : p.a[i * p.lda + k];
        if (!p.trans_b) {
          add_scaled(a, p.b + k * p.ldb + j0, to, columns);
          continue;
        }
        T row[kColumns];
        for (int64_t j = 0; j < columns; ++j)
          row[j] = adjoint_of(p.b[(j0 + j) * p.ldb + k], conjugate);
        add_scaled(a, row, to, columns);
      }
    }
  }
}

template <class T>
auto blas_function(const BlasApi& api) {
  if constexpr (std::is_same_v<T, std::complex<float>>) return api.cgemm;
  return api.zgemm;
}

template <class T>
void blas_product(const BlasApi& api, const Product<T>& p, bool conjugate) {
  const int32_t turned = conjugate ? kBlasAdjoint : kBlasTranspose;
  const T one(1), zero(0);
  blas_function<T>(api)(p.trans_a ? turned : kBlasPlain, p.trans_b ? turned : kBlasPlain,
                        static_cast<int32_t>(p.m), static_cast<int32_t>(p.n),
                        static_cast<int32_t>(p.k), &one, p.a, static_cast<int32_t>(p.lda), p.b,
                        static_cast<int32_t>(p.ldb), &zero, p.c, static_cast<int32_t>(p.ldc));
}

// Rows [m0, m1) of one product; BLAS, where `api` is one, gets all of them.
template <class T>
void multiply(const BlasApi* api, const Product<T>& p, bool conjugate, int64_t m0, int64_t m1) {
  if constexpr (is_complex_type<T>) {
    if (api != nullptr) return blas_product(*api, p, conjugate);
  }
  plain_rows(p, conjugate, m0, m1);
}

// T: the type computed in, unsigned for integers: overflow is defined.
template <class T>
std::unique_ptr<Kernel> prepare(const PrepareContext& c) {
  const BatchProduct g = BatchProduct::of(c);
  const BlasApi* api = nullptr;
  if constexpr (is_complex_type<T>) {
    constexpr int64_t widest = std::numeric_limits<int32_t>::max();
    if (std::max({g.m, g.n, g.k}) <= widest && g.work() >= 4096) api = blas();
  }
  // A piece: so many rows of one product, all of it by BLAS.
  const double row_work = std::max(1.0, static_cast<double>(g.n) * static_cast<double>(g.k));
  const int64_t rows = api != nullptr
                           ? std::max<int64_t>(1, g.m)
                           : static_cast<int64_t>(std::clamp(65536 / row_work, 1.0, 1e9));
  const int64_t row_blocks = std::max<int64_t>(1, (g.m + rows - 1) / rows);
  const double cost = 50 + g.work() * (is_complex_type<T> ? 1.0 : 0.5);
  return make_kernel(
      [=](RunContext& c) {
        const BlasScope scope(api);
        const T* a = static_cast<const T*>(c.input(0).raw());
        const T* b = static_cast<const T*>(c.input(1).raw());
        T* out = static_cast<T*>(c.output(0).raw());
        c.run_chunks(g.batch * row_blocks, cost, [&](int64_t chunk) {
          const int64_t entry = chunk / row_blocks;
          const Product<T> p = g.product(a, b, out, entry);
          const int64_t m0 = chunk % row_blocks * rows, m1 = std::min(g.m, m0 + rows);
          multiply(api, p, g.adjoint, m0, m1);
        });
      },
      cost);
}

}  // namespace

std::unique_ptr<Kernel> prepare_matmul_integer(const PrepareContext& c) {
  switch (dtype_size(c.op().input_type(0))) {
    case 1:
      return prepare<uint8_t>(c);
    case 2:
      return prepare<uint16_t>(c);
    case 4:
      return prepare<uint32_t>(c);
    default:
      return prepare<uint64_t>(c);
  }
}
std::unique_ptr<Kernel> prepare_matmul_complex64(const PrepareContext& c) {
  return prepare<std::complex<float>>(c);
}
std::unique_ptr<Kernel> prepare_matmul_complex128(const PrepareContext& c) {
  return prepare<std::complex<double>>(c);
}

}  // namespace treenail::cpu
