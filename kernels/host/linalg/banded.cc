// SPDX-License-Identifier: Apache-2.0
// Triangular systems whose matrices have a few diagonals: substitution that meets these alone.
#include "framework/base/small_vector.h"
#include "kernels/host/linalg/banded_work.h"

namespace treenail::host {
namespace {

// Which matrix and which right side a system of the broadcast batch has.
struct BroadcastBatch {
  struct Axis {
    int64_t extent, matrix_step, rhs_step;  // 0: broadcast
  };
  SmallVector<Axis, 2> axes;

  BroadcastBatch(const Shape& matrix, const Shape& rhs, const Shape& both) {
    int64_t matrix_step = 1, rhs_step = 1;
    for (int i = both.rank() - 1; i >= 0; --i) {
      const int64_t a = extent(matrix, i - both.rank()), b = extent(rhs, i - both.rank());
      axes.push_back({both.dim(i), a == 1 ? 0 : matrix_step, b == 1 ? 0 : rhs_step});
      matrix_step *= a;
      rhs_step *= b;
    }
  }
  void entries(int64_t index, int64_t& matrix, int64_t& rhs) const {
    matrix = rhs = 0;
    for (const Axis& axis : axes) {
      const int64_t at = index % axis.extent;
      index /= axis.extent;
      matrix += at * axis.matrix_step;
      rhs += at * axis.rhs_step;
    }
  }

 private:
  static int64_t extent(const Shape& shape, int from_end) {
    const int axis = shape.rank() + from_end;
    return axis >= 0 ? shape.dim(axis) : 1;
  }
};

// How the bands of A, or of its adjoint, stand in memory.
struct Bands {
  int64_t count, n;
  bool lower, adjoint;

  bool downwards() const { return lower != adjoint; }  // the first unknown is found first
  // The element that row i has `distance` from the diagonal, on its side of it.
  template <class T>
  WideNumber<T> element(const T* bands, int64_t i, int64_t distance) const {
    const int64_t band = lower ? distance : count - 1 - distance;
    // The adjoint's row i is A's column i.
    const int64_t row = !adjoint ? i : lower ? i + distance : i - distance;
    const WideNumber<T> value(bands[band * n + row]);
    if constexpr (is_complex_number<T>) {
      return adjoint ? std::conj(value) : value;
    } else {
      return value;
    }
  }
  // x holds the right sides, n rows of k, and then the solution. False where a pivot is zero.
  template <class T>
  bool solve(const T* bands, int64_t k, WideNumber<T>* x) const {
    const int64_t step = downwards() ? 1 : -1;
    for (int64_t done = 0, i = downwards() ? 0 : n - 1; done < n; ++done, i += step) {
      for (int64_t d = 1; d <= std::min(done, count - 1); ++d) {
        subtract_multiple(element(bands, i, d), x + (i - step * d) * k, k, x + i * k);
      }
      const WideNumber<T> pivot = element(bands, i, 0);
      if (pivot == WideNumber<T>(0)) return false;
      divide_row(pivot, k, x + i * k);
    }
    return true;
  }
};

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
      int64_t matrix, rhs;
      batch.entries(i, matrix, rhs);
      convert(matrices<T>(c.input(1)) + rhs * m.elements(), m.elements(), x);
      if (!bands.solve(matrices<T>(c.input(0)) + matrix * bands.count * bands.n, m.columns, x)) {
        throw unsuitable_matrix(kMatrixNotInvertible, of_matrices, matrix);
      }
      convert(x, m.elements(), matrices<T>(c.output(0)) + i * m.elements());
    });
  }
};

}  // namespace

void register_banded_kernels(KernelRegistry& r) {
  add_linalg_kernels<BandedTriangularSolve>(r, "BandedTriangularSolve");
}

}  // namespace treenail::host
