// SPDX-License-Identifier: Apache-2.0
// Short triangular systems whose matrices have a few diagonals, one per vector lane, in double
// precision whatever the dtype. Longer ones: kernels/host/linalg/banded.cc.
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/cpu/linalg/lanes.h"
#include "kernels/host/linalg/bands.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

// x holds the right sides, n rows of k, and then the solutions. A lane of the result is set where a
// pivot is zero.
template <class W>
LaneMask<W> substitute(const host::Bands& b, const LaneNumber<W>* bands, int64_t k,
                       LaneNumber<W>* x) {
  using L = LaneNumber<W>;
  const auto element = [&](int64_t i, int64_t distance) {
    const L a = bands[b.place(i, distance)];
    return b.adjoint ? conjugate(a) : a;
  };
  LaneMask<W> singular = {};
  const int64_t step = b.downwards() ? 1 : -1;
  for (int64_t done = 0, i = b.downwards() ? 0 : b.n - 1; done < b.n; ++done, i += step) {
    const L pivot = element(i, 0), inverse = reciprocal(pivot);
    singular |= is_zero(pivot);
    for (int64_t c = 0; c < k; ++c) {
      L sum = x[i * k + c];
      for (int64_t d = 1; d <= std::min(done, b.count - 1); ++d) {
        sum = mul_add(-element(i, d), x[(i - step * d) * k + c], sum);
      }
      x[i * k + c] = times(sum, inverse);
    }
  }
  return singular;
}

// Where the inputs of one system after the other are.
template <class T>
struct Systems {
  const T *bands, *rhs;
  int64_t of_bands, of_rhs;
  const host::BroadcastBatch& batch;

  int64_t matrix(int64_t i) const { return batch.entries(i).matrix; }
  const T* own_bands(int64_t i) const { return bands + matrix(i) * of_bands; }
  const T* own_rhs(int64_t i) const { return rhs + batch.entries(i).rhs * of_rhs; }
};

template <class T>
std::unique_ptr<Kernel> prepare_banded(const PrepareContext& p) {
  using W = host::WideNumber<T>;
  const host::MatrixBatch given(p.input_shape(0)), rhs(p.input_shape(1)), m(p.output_shape(0));
  if (std::max(m.rows, given.rows) > kMostLaneRows || m.columns > kMostLaneColumns ||
      m.count * m.elements() == 0) {
    return host::banded_triangular_solve(p);
  }
  const host::Bands bands{given.rows, m.rows, p.op().get_bool("lower"), p.op().get_bool("adjoint")};
  const host::BroadcastBatch batch(given.batch, rhs.batch, m.batch);
  const auto numbers = static_cast<double>(m.elements()), count = static_cast<double>(bands.count);
  const double cost =
      group_cost(static_cast<double>(given.elements()) + 2 * numbers, numbers * (10 + 2 * count));
  return make_kernel(
      [=](RunContext& c) {
        const Systems<T> systems = {host::matrices<T>(c.input(0)), host::matrices<T>(c.input(1)),
                                    given.elements(), m.elements(), batch};
        T* const to = host::matrices<T>(c.output(0));
        each_group<W>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneNumber<W> a[kMostLaneRows * kMostLaneRows], x[kMostLaneRows * kMostLaneColumns];
          const auto system = [=](int l) { return first + std::min<int64_t>(l, count - 1); };
          pack_from([&](int l) { return systems.own_bands(system(l)); }, given.elements(), a);
          pack_from([&](int l) { return systems.own_rhs(system(l)); }, m.elements(), x);
          const LaneMask<W> singular = substitute<W>(bands, a, m.columns, x);
          for (int64_t l = 0; any(singular) && l < count; ++l) {
            if (singular[l] == 0) continue;
            throw host::unsuitable_matrix(host::kMatrixNotInvertible, given.batch,
                                          systems.matrix(first + l));
          }
          unpack_lanes(x, count, m.elements(), to + first * m.elements());
        });
      },
      cost * static_cast<double>(m.count) / kGroup<W>);
}

}  // namespace

void register_lane_banded_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("BandedTriangularSolve", {{"T", {dtype}}}, prepare_banded<T>);
  });
}

}  // namespace treenail::cpu
