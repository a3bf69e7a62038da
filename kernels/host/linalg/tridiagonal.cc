// SPDX-License-Identifier: Apache-2.0
// Tridiagonal systems and products. Eliminating one unknown leaves a row of the upper factor with
// two elements beside the diagonal at most: the second one where rows were exchanged.
#include <cmath>
#include <utility>

#include "kernels/host/linalg/banded_work.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// What one row of the upper factor has on the diagonal and after it.
template <class W>
struct UpperRow {
  W diagonal, next, second;
};

// The system that is solved: its diagonals, and x, which holds the right sides first.
template <class W>
struct Tridiagonal {
  int64_t n, k;  // order, right sides
  W* upper;      // 3 n, a row of the factor each
  W* x;          // n k

  UpperRow<W>& row(int64_t i) const { return reinterpret_cast<UpperRow<W>*>(upper)[i]; }

  // From row i, the pivot's, and the elements `left`, of column i, and those of the next row:
  // what the next row is without unknown i.
  void eliminate(int64_t i, W left, W diagonal, W next) const {
    const UpperRow<W> pivot = row(i);
    const W factor = left / pivot.diagonal;
    row(i + 1) = {diagonal - factor * pivot.next, next - factor * pivot.second, W(0)};
    subtract_multiple(factor, x + i * k, k, x + (i + 1) * k);
  }
  // The next row has the larger element in column i and takes this one's place.
  void exchange(int64_t i, W left, W diagonal, W next) const {
    const UpperRow<W> own = row(i);
    row(i) = {left, diagonal, next};
    std::swap_ranges(x + i * k, x + (i + 1) * k, x + (i + 1) * k);
    eliminate(i, own.diagonal, own.next, own.second);
  }
  void substitute_back() const {
    for (int64_t i = n - 1; i >= 0; --i) {
      const UpperRow<W>& own = row(i);
      if (i + 1 < n) subtract_multiple(own.next, x + (i + 1) * k, k, x + i * k);
      if (own.second != W(0)) subtract_multiple(own.second, x + (i + 2) * k, k, x + i * k);
      divide_row(own.diagonal, k, x + i * k);
    }
  }
  // From diagonals [3, n]. False where a pivot is zero.
  template <class T>
  bool solve(const T* d, bool pivoting) const {
    const auto above = [&](int64_t i) { return i + 1 < n ? W(d[i]) : W(0); };
    row(0) = {W(d[n]), above(0), W(0)};
    for (int64_t i = 0; i + 1 < n; ++i) {
      const W left(d[2 * n + i + 1]), diagonal(d[n + i + 1]);
      const bool other = pivoting && std::abs(row(i).diagonal) < std::abs(left);
      if (!other && row(i).diagonal == W(0)) return false;
      if (other) {
        exchange(i, left, diagonal, above(i + 1));
      } else {
        eliminate(i, left, diagonal, above(i + 1));
      }
    }
    if (row(n - 1).diagonal == W(0)) return false;
    substitute_back();
    return true;
  }
};

template <class T>
struct TridiagonalSolve {
  using W = WideNumber<T>;

  static std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
    const MatrixBatch m(p.output_shape(0));
    if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
    const bool pivoting = p.op().get_bool("partial_pivoting");
    const double cost = kBandedStepNs<T> * static_cast<double>(m.rows * (20 + 6 * m.columns));
    return make_kernel([=](RunContext& c) { run(c, m, pivoting, cost); },
                       cost * static_cast<double>(m.count));
  }

  static void run(RunContext& c, const MatrixBatch& m, bool pivoting, double cost) {
    const T* const diagonals = matrices<T>(c.input(0));
    const T* const rhs = matrices<T>(c.input(1));
    T* const result = matrices<T>(c.output(0));
    const int64_t n = m.rows, room = padded<W>(3 * n);
    each_system<W>(c, m.count, cost, room + m.elements(), [&](int64_t i, W* memory) {
      const Tridiagonal<W> system{n, m.columns, memory, memory + room};
      convert(rhs + i * m.elements(), m.elements(), system.x);
      if (!system.solve(diagonals + i * 3 * n, pivoting)) {
        throw unsuitable_matrix(tridiagonal_words(pivoting), m.batch, i);
      }
      convert(system.x, m.elements(), result + i * m.elements());
    });
  }
};

template <class T>
struct TridiagonalMatMul {
  using W = WideNumber<T>;

  static std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
    const MatrixBatch m(p.output_shape(0));
    if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
    const double cost = kBandedStepNs<T> * static_cast<double>(m.rows * (3 + 3 * m.columns));
    return make_kernel([=](RunContext& c) { run(c, m, cost); },
                       cost * static_cast<double>(m.count));
  }

  // One row of the result from that row of x and the ones around it, of k numbers each. What is
  // not there is not read.
  template <bool kNext, bool kPrevious>
  static void product_row(const W (&factors)[3], const T* x, int64_t k, T* result) {
    for (int64_t column = 0; column < k; ++column) {
      W sum = factors[1] * W(x[column]);
      if (kNext) sum += factors[0] * W(x[column + k]);
      if (kPrevious) sum += factors[2] * W(x[column - k]);
      result[column] = static_cast<T>(sum);
    }
  }

  // Row `i` of all rows of the batch, the row `place` of its matrix.
  static void product_row(const T* const (&diagonals)[3], int64_t i, int64_t place, int64_t n,
                          const T* x, int64_t k, T* result) {
    const W factors[] = {W(diagonals[0][i]), W(diagonals[1][i]), W(diagonals[2][i])};
    const bool next = place + 1 < n, previous = place > 0;
    if (next && previous) return product_row<true, true>(factors, x, k, result);
    if (next) return product_row<true, false>(factors, x, k, result);
    if (previous) return product_row<false, true>(factors, x, k, result);
    product_row<false, false>(factors, x, k, result);
  }

  static void run(RunContext& c, const MatrixBatch& m, double cost) {
    const T* const diagonals[] = {matrices<T>(c.input(0)), matrices<T>(c.input(1)),
                                  matrices<T>(c.input(2))};
    const T* const rhs = matrices<T>(c.input(3));
    T* const result = matrices<T>(c.output(0));
    const int64_t n = m.rows, k = m.columns;
    const double each = cost / static_cast<double>(n);
    const auto grain = static_cast<int64_t>(std::max(1.0, 50000 / each));
    c.parallel_for(m.count * n, grain, each, [&](int64_t i, int64_t end) {
      for (int64_t place = i % n; i < end; ++i, place = place + 1 < n ? place + 1 : 0) {
        product_row(diagonals, i, place, n, rhs + i * k, k, result + i * k);
      }
    });
  }
};

}  // namespace

std::unique_ptr<Kernel> tridiagonal_solve(const PrepareContext& p) {
  return prepare_by_dtype<TridiagonalSolve>(p);
}
std::unique_ptr<Kernel> tridiagonal_matmul(const PrepareContext& p) {
  return prepare_by_dtype<TridiagonalMatMul>(p);
}

}  // namespace treenail::host
