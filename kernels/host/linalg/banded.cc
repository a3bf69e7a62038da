// SPDX-License-Identifier: Apache-2.0
// Triangular systems whose matrices have a few diagonals: substitution that meets these alone.
#include "kernels/host/linalg/banded_work.h"
#include "kernels/host/linalg/bands.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// x holds the right sides, n rows of k, and then the solution. False where a pivot is zero.
template <class T>
bool substitute(const Bands& b, const T* bands, int64_t k, WideNumber<T>* x) {
  using W = WideNumber<T>;
  const auto element = [&](int64_t i, int64_t distance) {
    const W value(bands[b.place(i, distance)]);
    if constexpr (is_complex_number<T>) {
      return b.adjoint ? std::conj(value) : value;
    } else {
      return value;
    }
  };
  const int64_t step = b.downwards() ? 1 : -1;
  for (int64_t done = 0, i = b.downwards() ? 0 : b.n - 1; done < b.n; ++done, i += step) {
    for (int64_t d = 1; d <= std::min(done, b.count - 1); ++d) {
      subtract_multiple(element(i, d), x + (i - step * d) * k, k, x + i * k);
    }
    const W pivot = element(i, 0);
    if (pivot == W(0)) return false;
    divide_row(pivot, k, x + i * k);
  }
  return true;
}

template <class T>
struct BandedTriangularSolve {
  using W = WideNumber<T>;

  static std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
    const MatrixBatch given(p.input_shape(0)), rhs(p.input_shape(1)), m(p.output_shape(0));
    if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
    const Bands bands{given.rows, m.rows, p.op().get_bool("lower"), p.op().get_bool("adjoint")};
    const BroadcastBatch batch(given.batch, rhs.batch, m.batch);
    const double cost =
        kBandedStepNs<T> * static_cast<double>(m.rows * (10 + bands.count * m.columns));
    return make_kernel([=](RunContext& c) { run(c, given.batch, m, bands, batch, cost); },
                       cost * static_cast<double>(m.count));
  }

  static void run(RunContext& c, const Shape& of_matrices, const MatrixBatch& m, const Bands& bands,
                  const BroadcastBatch& batch, double cost) {
    each_system<W>(c, m.count, cost, m.elements(), [&](int64_t i, W* x) {
      const auto [matrix, rhs] = batch.entries(i);
      convert(matrices<T>(c.input(1)) + rhs * m.elements(), m.elements(), x);
      const T* const own = matrices<T>(c.input(0)) + matrix * bands.count * bands.n;
      if (!substitute(bands, own, m.columns, x)) {
        throw unsuitable_matrix(kMatrixNotInvertible, of_matrices, matrix);
      }
      convert(x, m.elements(), matrices<T>(c.output(0)) + i * m.elements());
    });
  }
};

}  // namespace

std::unique_ptr<Kernel> banded_triangular_solve(const PrepareContext& p) {
  return prepare_by_dtype<BandedTriangularSolve>(p);
}

}  // namespace treenail::host
