// SPDX-License-Identifier: Apache-2.0
// Square roots and logarithms of small matrices by their Schur form, in double precision whatever
// the dtype. Roots of the triangles are taken in the lanes, too; logarithms, whose triangles need
// different degrees and numbers of roots, one by one. Larger matrices, and what is NaN:
// kernels/host/linalg/schur_functions.cc.
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_triangle.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

using Z = std::complex<double>;
using L = ComplexVec<double>;
using M = Int<VecD>;

constexpr int64_t kMost = kMostLaneRows * kMostLaneRows;
static_assert(kMostLaneRows <= host::kMostSmallRows);

struct Triangle : LaneTriangle<double> {
  using LaneTriangle::LaneTriangle;
  M none = {};  // lanes whose function there is not

  // Of a real matrix, whose function is to be one.
  void refuse_negative_values() {
    for (int64_t i = 0; i < n; ++i) {
      const L value = t[i * (n + 1)];
      none |= (value.im == VecD{}) & (value.re < VecD{});
    }
  }

  // t becomes its square root. (Bjorck and Hammarling, A Schur method for the square root of a
  // matrix, 1983.)
  void take_root() {
    for (int64_t i = 0; i < n; ++i) t[i * (n + 1)] = square_root(t[i * (n + 1)]);
    for (int64_t k = 1; k < n; ++k) {
      for (int64_t i = k - 1; i >= 0; --i) {
        L& x = t[i * n + k];
        const L sum = t[i * (n + 1)] + t[k * (n + 1)];
        x = choose(is_zero(x), x, times(x, reciprocal(sum)));
        none |= ~(size_of(x) * VecD{} == VecD{});
        for (int64_t j = 0; j < i; ++j) t[j * n + k] = mul_add(-t[j * n + i], x, t[j * n + k]);
      }
    }
  }

  // t becomes its logarithm, lane by lane; `real`: real numbers where no eigenvalues are complex.
  void take_logarithm(bool real) {
    M complex = real ? M{} : ~M{};
    for (int64_t k = 0; k < n; ++k) complex |= pair[k];
    for (int64_t l = 0; l < kLanes<double>; ++l) {
      if (none[l] != 0) continue;
      const bool done = complex[l] != 0 ? log_of_lane<Z>(l) : log_of_lane<double>(l);
      none[l] = done ? 0 : -1;
    }
  }

  // u t u^H.
  void multiply(L* result) const {
    L row[kMostLaneRows];
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        row[c] = L{};
        for (int64_t k = 0; k <= c; ++k) row[c] = mul_add(u[r * n + k], t[k * n + c], row[c]);
      }
      for (int64_t c = 0; c < n; ++c) {
        L sum = L{};
        for (int64_t k = 0; k < n; ++k) sum = mul_add(row[k], conjugate(u[c * n + k]), sum);
        result[r * n + c] = sum;
      }
    }
  }

 private:
  template <class N>
  static N number(Z x) {
    if constexpr (std::is_same_v<N, Z>) {
      return x;
    } else {
      return x.real();
    }
  }
  template <class N>
  bool log_of_lane(int64_t l) {
    N from[kMost], to[kMost];
    for (int64_t i = 0; i < n * n; ++i) from[i % n * n + i / n] = number<N>(element(t[i], l));
    if (!host::log_of_triangle(n, from, to)) return false;
    for (int64_t i = 0; i < n * n; ++i) {
      const Z x = i % n >= i / n ? Z(to[i % n * n + i / n]) : Z(0);
      t[i].re[l] = x.real();
      t[i].im[l] = x.imag();
    }
    return true;
  }
};

// W: double or complex<double>.
template <class W>
struct LaneFunction {
  LaneNumber<W> x[kMost];  // the matrices, and then their functions
  M failed;
  int64_t n;

  explicit LaneFunction(int64_t order) : n(order) {}

  template <bool kLogarithm>
  void compute() {
    // Of a lower triangle the transpose is a Schur form: nothing mixes small eigenvalues with large
    // ones.
    const M lower = zeros_beside(x, n, Side::kAbove);
    transpose_where(lower, x, n);
    LaneSchur<W> schur(n, true);
    std::copy_n(x, n * n, schur.a);
    schur.solve();
    failed = schur.failed;
    Triangle triangle(schur);
    triangle.none |= schur.not_finite;
    if (!is_complex_lane<W>) triangle.refuse_negative_values();
    const VecD unit = schur.unit();
    if constexpr (kLogarithm) {
      triangle.take_logarithm(!is_complex_lane<W>);
    } else {
      triangle.take_root();
    }
    L result[kMost];
    triangle.multiply(result);
    const VecD factor = kLogarithm ? splat<VecD>(1) : schur.root_of_unit;
    for (int64_t i = 0; i < n * n; ++i) x[i] = finish(result[i] * factor, triangle.none);
    if (kLogarithm) add_logarithm(unit);
    transpose_where(lower, x, n);
  }

 private:
  static LaneNumber<W> finish(L value, M none) {
    const auto nan = constant<W>(std::numeric_limits<double>::quiet_NaN());
    if constexpr (is_complex_lane<W>) {
      return choose(none, nan, value);
    } else {
      return choose(none, nan, value.re);
    }
  }

  void add_logarithm(VecD unit) {
    VecD log;
    for (int64_t l = 0; l < kLanes<double>; ++l) log[l] = std::log(unit[l]);
    for (int64_t i = 0; i < n; ++i) x[i * (n + 1)] = x[i * (n + 1)] + from_real<W>(log);
  }
};

template <class T, bool kLogarithm>
std::unique_ptr<Kernel> prepare_function(const PrepareContext& p) {
  using W = host::WideNumber<T>;
  const host::MatrixBatch m(p.input_shape(0));
  if (m.rows > kMostLaneRows || m.count * m.elements() == 0) {
    return kLogarithm ? host::dense_logarithm(p) : host::dense_square_root(p);
  }
  const auto order = static_cast<double>(m.rows);
  const double cost =
      group_cost(4 * order * order, (kLogarithm ? 600 : 200) * order * order * order);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows;
        each_group<W>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneFunction<W> lanes(n);
          pack_lanes(host::matrices<T>(c.input(0)) + first * n * n, count, n * n, lanes.x);
          lanes.template compute<kLogarithm>();
          refuse_lanes(lanes.failed, count, first, host::kNoSchurForm, m.batch);
          unpack_lanes(lanes.x, count, n * n, host::matrices<T>(c.output(0)) + first * n * n);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<W>);
}

}  // namespace

void register_lane_schur_functions_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("MatrixSquareRoot", {{"T", {dtype}}}, prepare_function<T, false>);
    r.add("MatrixLogarithm", {{"T", {dtype}}}, prepare_function<T, true>);
  });
}

}  // namespace treenail::cpu
