// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of small square matrices by their Schur form. Larger ones, and the
// rules for order, length and phase: kernels/host/linalg/eig.cc.
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_triangle.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/eig_order.h"

namespace treenail::cpu {
namespace {

template <class T>
using ComplexOf = std::complex<RealOf<T>>;

// Eigenvectors, from those of the triangle by substitution.
template <class R>
struct LaneVectors {
  using L = ComplexVec<R>;
  using V = Vec<R>;
  L v[kMostLaneRows * kMostLaneRows];

  explicit LaneVectors(const LaneTriangle<R>& from) : triangle_(from), n_(from.n) {
    const L* const t = triangle_.t;
    V largest = V{};
    for (int64_t i = 0; i < n_ * n_; ++i) largest = greater_of(size_of(t[i]), largest);
    least_ = largest * kRounding<R>;
    for (int64_t k = 0; k < n_; ++k) {
      substitute(k);
      multiply(k);
      normalize(k);
    }
    for (int64_t k = 0; k + 1 < n_; ++k) {
      for (int64_t i = 0; i < n_; ++i) {
        L* const x = v + i * n_ + k;
        x[1] = choose(triangle_.pair[k], conjugate(x[0]), x[1]);
      }
    }
  }

 private:
  const LaneTriangle<R>& triangle_;
  int64_t n_;
  V least_;
  L x_[kMostLaneRows];

  // x_ solves (t - t[k, k]) x = 0. Differences below `least_` count as that: vectors of equal
  // eigenvalues are then nearly the same, as of a defective matrix they are. What grows out of
  // range on the way is scaled down.
  void substitute(int64_t k) {
    constexpr R kLarge = sizeof(R) == 4 ? R(1e10) : R(1e100);
    const L* const t = triangle_.t;
    for (int64_t i = 0; i < k; ++i) x_[i] = -t[i * n_ + k];
    x_[k] = constant<std::complex<R>>(1);
    for (int64_t i = k - 1; i >= 0; --i) {
      L difference = t[i * (n_ + 1)] - t[k * (n_ + 1)];
      const auto equal = size_of(difference) < least_;
      difference = choose(equal, from_real<std::complex<R>>(least_), difference);
      x_[i] = choose(is_zero(difference), L{}, times(x_[i], reciprocal(difference)));
      for (int64_t j = 0; j < i; ++j) x_[j] = mul_add(-t[j * n_ + i], x_[i], x_[j]);
      const auto large = size_of(x_[i]) > splat<V>(kLarge);
      if (any(large)) scale_down(k, large ? splat<V>(1 / kLarge) : splat<V>(1));
    }
    V largest = V{};
    for (int64_t i = 0; i <= k; ++i) largest = greater_of(largest_part(x_[i]), largest);
    scale_down(k, splat<V>(1) / largest);
  }
  void scale_down(int64_t k, V by) {
    for (int64_t i = 0; i <= k; ++i) x_[i] = x_[i] * by;
  }

  void multiply(int64_t k) {
    for (int64_t i = 0; i < n_; ++i) {
      L sum = L{};
      for (int64_t j = 0; j <= k; ++j) sum = mul_add(triangle_.u[i * n_ + j], x_[j], sum);
      v[i * n_ + k] = sum;
    }
  }

  // To length 1; the first of the elements that are within a hundredth of the largest one becomes
  // real and positive.
  void normalize(int64_t k) {
    V sizes[kMostLaneRows], largest = V{}, squares = V{};
    for (int64_t i = 0; i < n_; ++i) {
      const V square = add_square(v[i * n_ + k], V{});
      squares += square;
      sizes[i] = square_root(square);
      largest = greater_of(sizes[i], largest);
    }
    const V length = square_root(squares);
    L turn = L{};
    Int<V> found = {};
    for (int64_t i = 0; i < n_; ++i) {
      const Int<V> first = ~found & (sizes[i] >= largest * splat<V>(R(0.99)));
      found |= first;
      turn = choose(first, conjugate(v[i * n_ + k]) / sizes[i], turn);
      sizes[i] = first ? sizes[i] : V{};  // of this element alone from here on
    }
    for (int64_t i = 0; i < n_; ++i) {
      L& x = v[i * n_ + k];
      const L turned = choose(sizes[i] > V{}, L{sizes[i], V{}}, times(x, turn));
      x = turned / length;
    }
  }
};

template <class T>
struct Outputs {
  using Z = ComplexOf<T>;
  Z* values;
  Z* vectors;  // null: none are wanted
  // Of each matrix, in order.
  void store(int64_t count, int64_t n, const Z* from_values, const Z* from_vectors) const {
    int64_t order[kMostLaneRows];
    for (int64_t l = 0; l < count; ++l) {
      host::sort_values(n, from_values + l * n, order);
      for (int64_t k = 0; k < n; ++k) values[l * n + k] = from_values[l * n + order[k]];
      if (vectors == nullptr) continue;
      for (int64_t i = l * n; i < (l + 1) * n; ++i) {
        for (int64_t k = 0; k < n; ++k) vectors[i * n + k] = from_vectors[i * n + order[k]];
      }
    }
  }
};

template <class T>
void decompose(const host::MatrixBatch& m, const T* from, const Outputs<T>& to, int64_t first,
               int64_t count) {
  using R = RealOf<T>;
  using Z = ComplexOf<T>;
  const int64_t n = m.rows;
  LaneSchur<T> schur(n, to.vectors != nullptr);
  pack_lanes(from, count, n * n, schur.a);
  schur.solve();
  refuse_lanes(schur.failed | schur.not_finite, count, first, host::kNoGeneralEigenvalues, m.batch);
  const LaneTriangle<R> triangle(schur);
  ComplexVec<R> values[kMostLaneRows];
  for (int64_t k = 0; k < n; ++k) values[k] = triangle.t[k * (n + 1)] * schur.unit();
  Z of_values[kGroup<T> * kMostLaneRows];
  Z of_vectors[kGroup<T> * kMostLaneRows * kMostLaneRows];
  unpack_lanes(values, count, n, of_values);
  if (to.vectors != nullptr) {
    unpack_lanes(LaneVectors<R>(triangle).v, count, n * n, of_vectors);
  }
  to.store(count, n, of_values, of_vectors);
}

template <class T>
std::unique_ptr<Kernel> prepare_eig(const PrepareContext& p) {
  const host::MatrixBatch m(p.input_shape(0));
  if (m.rows > kMostLaneRows || m.count * m.elements() == 0) return host::dense_eig(p);
  const bool vectors = p.op().get_bool("compute_v");
  const auto order = static_cast<double>(m.rows);
  const double cost = group_cost(4 * order * order, 200 * order * order * order);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = m.rows;
        using Z = ComplexOf<T>;
        each_group<T>(c, m.count, cost, [&](int64_t first, int64_t count) {
          const Outputs<T> to = {
              host::matrices<Z>(c.output(0)) + first * n,
              vectors ? host::matrices<Z>(c.output(1)) + first * n * n : nullptr};
          decompose<T>(m, host::matrices<T>(c.input(0)) + first * n * n, to, first, count);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<T>);
}

}  // namespace

void register_lane_eig_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    const DType complex = sizeof(RealOf<T>) == 4 ? DType::kComplex64 : DType::kComplex128;
    r.add("Eig", {{"T", {dtype}}, {"Tout", {complex}}}, prepare_eig<T>);
  });
}

}  // namespace treenail::cpu
