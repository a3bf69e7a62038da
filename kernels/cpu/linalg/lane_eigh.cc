// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of small Hermitian matrices by Jacobi's method. Larger ones:
// kernels/host/linalg/eigh.cc.
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/jacobi.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

template <class T>
struct LaneEigh {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  L a[kMostLaneRows * kMostLaneRows];
  L v[kMostLaneRows * kMostLaneRows];
  L values[kMostLaneRows];
  LaneMask<T> failed;
  int64_t n;

  explicit LaneEigh(int64_t order) : n(order) {}

  // From the lower triangle of a, which is lost; the columns of v become eigenvectors.
  void solve() {
    mirror();
    const R unit = scale();
    set_identity<T>(v, n, n);
    LaneMask<T> turned = ~LaneMask<T>{};
    for (int sweep = 0; sweep < kMostSweeps && any(turned); ++sweep) turned = this->sweep();
    failed |= turned;
    for (int64_t i = 0; i < n; ++i) values[i] = a[i * (n + 1)] * unit;
    sort();
  }

 private:
  R negligible_;

  void mirror() {
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < r; ++c) a[c * n + r] = conjugate(a[r * n + c]);
      a[r * n + r] = from_real<T>(real_part(a[r * n + r]));
    }
  }

  // Divides by the largest element, so that squares stay in range.
  R scale() {
    const R largest = largest_of<T>(a, n * n, &failed);
    const R unit = largest == R{} ? splat<R>(1) : largest;
    R squares = R{};
    for (int64_t i = 0; i < n * n; ++i) {
      a[i] = a[i] / unit;
      squares = add_square(a[i], squares);
    }
    negligible_ = square_root(squares) * (kRounding<T> / 8);
    return unit;
  }

  // One rotation for each element above the diagonal; gives the lanes that had any.
  LaneMask<T> sweep() {
    LaneMask<T> turned = {};
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const LaneMask<T> active = largest_part(a[p * n + q]) > negligible_;
        if (!any(active)) continue;
        turned |= active;
        const R of_p = real_part(a[p * n + p]), of_q = real_part(a[q * n + q]);
        rotate(Rotation<T>(active, of_p, a[p * n + q], of_q), p, q);
      }
    }
    return turned;
  }

  void rotate(const Rotation<T>& rotation, int64_t p, int64_t q) {
    const R turned = rotation.tangent * rotation.between;
    const L moved = from_real<T>(rotation.active ? turned : R{});
    a[p * n + p] = a[p * n + p] - moved;
    a[q * n + q] = a[q * n + q] + moved;
    a[p * n + q] = choose(rotation.active, L{}, a[p * n + q]);
    for (int64_t r = 0; r < n; ++r) {
      rotation.turn(v[r * n + p], v[r * n + q]);
      if (r == p || r == q) continue;
      L x = at(r, p), y = at(r, q);
      rotation.turn(x, y);
      set(r, p, x);
      set(r, q, y);
    }
  }

  // Elements of the whole matrix, of which that above the diagonal is kept.
  L at(int64_t r, int64_t c) const { return r < c ? a[r * n + c] : conjugate(a[c * n + r]); }
  void set(int64_t r, int64_t c, L x) {
    (r < c ? a[r * n + c] : a[c * n + r]) = r < c ? x : conjugate(x);
  }

  // Ascending, by exchanges of neighbours.
  void sort() {
    for (int64_t round = 0; round < n; ++round) {
      for (int64_t i = round % 2; i + 1 < n; i += 2) {
        const LaneMask<T> wrong = real_part(values[i]) > real_part(values[i + 1]);
        exchange_where(wrong, values[i], values[i + 1]);
        for (int64_t r = 0; r < n; ++r) exchange_where(wrong, v[r * n + i], v[r * n + i + 1]);
      }
    }
  }
};

template <class T>
std::unique_ptr<Kernel> prepare_eigh(const PrepareContext& p) {
  const host::MatrixBatch m(p.input_shape(0));
  if (m.rows > kMostLaneRows || m.count * m.elements() == 0) return host::dense_eigh(p);
  const bool vectors = p.op().get_bool("compute_v");
  const auto order = static_cast<double>(m.rows);
  const double cost = group_cost(2 * order * order, 60 * order * order * order);
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        T* const values = host::matrices<T>(c.output(0));
        T* const to = vectors ? host::matrices<T>(c.output(1)) : nullptr;
        const int64_t n = m.rows;
        each_group<T>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneEigh<T> lanes(n);
          pack_lanes(from + first * n * n, count, n * n, lanes.a);
          lanes.solve();
          refuse_lanes(lanes.failed, count, first, host::kNoEigenvalues, m.batch);
          unpack_lanes(lanes.values, count, n, values + first * n);
          if (vectors) unpack_lanes(lanes.v, count, n * n, to + first * n * n);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<T>);
}

}  // namespace

void register_lane_eigh_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("SelfAdjointEig", {{"T", {dtype}}}, prepare_eigh<T>);
  });
}

}  // namespace treenail::cpu
