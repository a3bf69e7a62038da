// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of square matrices, in an order and with lengths and phases that do
// not depend on the library: what a program does with them is the same with and without LAPACK.

#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/eig_order.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackEig = 48;

// To length 1; the first of the elements that are within a hundredth of the largest one becomes
// real and positive. A hundredth: ties are not left to rounding.
template <class Z>
void normalize(int64_t n, Z* v) {
  using R = typename Z::value_type;
  R largest = 0;
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(v[i]));
  for (int64_t i = 0; i < n; ++i) squares += std::norm(v[i] / largest);
  int64_t first = 0;
  while (std::abs(v[first]) < static_cast<R>(0.99) * largest) ++first;
  const R size = std::abs(v[first]);
  const Z turn = std::conj(v[first] / size) / static_cast<R>(std::sqrt(squares));
  for (int64_t i = 0; i < n; ++i) v[i] = v[i] / largest * turn;
  v[first] = std::abs(v[first]);
}

// Complex numbers of results as they stand in tensors.
template <class W>
Routines<Complex<W>> complex_numbers(const Routines<W>& routines) {
  return {nullptr, routines.of_lapack, routines.narrow};
}

template <class W>
struct EigRoom {
  using Z = Complex<W>;
  // In Ws; a complex number takes 1 or 2.
  static constexpr int64_t kEach = sizeof(Z) / sizeof(W);
  int64_t n, of_a, of_values, of_vectors, of_order, work;
  EigRoom(int64_t order, bool vectors, const Routines<W>& routines)
      : n(order),
        of_a(padded<W>(n * n)),
        of_values(padded<W>(kEach * n)),
        of_vectors(vectors ? padded<W>(kEach * n * n) : 0),
        of_order(
            padded<W>((n * static_cast<int64_t>(sizeof(int64_t)) + sizeof(W) - 1) / sizeof(W))),
        work(routines.table->eig_room(n, vectors) / static_cast<int64_t>(sizeof(W)) + 1) {}
  Z* values(W* a) const { return reinterpret_cast<Z*>(a + of_a); }
  Z* sorted(W* a) const { return reinterpret_cast<Z*>(a + of_a + of_values); }
  Z* vectors(W* a) const { return reinterpret_cast<Z*>(a + of_a + 2 * of_values); }
  int64_t* order(W* a) const {
    return reinterpret_cast<int64_t*>(a + of_a + 2 * of_values + of_vectors);
  }
  W* rest(W* a) const { return a + of_a + 2 * of_values + of_vectors + of_order; }
  int64_t whole() const { return of_a + 2 * of_values + of_vectors + of_order + work; }
};

// What was computed of matrix i, in order, into the outputs.
template <class W>
void store_sorted(const Routines<W>& routines, const EigRoom<W>& room, bool vectors, W* a,
                  RunContext& c, int64_t i) {
  using Z = Complex<W>;
  const int64_t n = room.n;
  const auto numbers = complex_numbers(routines);
  const Z* const values = room.values(a);
  Z *const sorted = room.sorted(a), *const v = room.vectors(a);
  int64_t* const order = room.order(a);
  sort_values(n, values, order);
  for (int64_t k = 0; k < n; ++k) sorted[k] = values[order[k]];
  numbers.store(sorted, n, c.output(0), i * n);
  if (!vectors) return;
  for (int64_t k = 0; k < n; ++k) {
    normalize(n, v + order[k] * n);
    numbers.store_apart(v + order[k] * n, n, n, c.output(1), i * n * n + k);
  }
}

template <class W>
std::unique_ptr<Kernel> eig_kernel(const MatrixBatch& m, bool vectors,
                                   const Routines<W>& routines) {
  const EigRoom<W> room(m.rows, vectors, routines);
  const MatrixMemory needs(room.whole(), routines.table->schur_takes(m.rows));
  const double cost = cubic_cost<W>(m.rows, vectors ? 25.0 : 10.0);
  return make_kernel(
      [=](RunContext& c) {
        const int64_t n = room.n;
        each_matrix(c, routines, m.count, cost, needs, [&](int64_t i, W* a) {
          routines.load_transposed(c.input(0), i * n * n, n, n, a);
          if (!all_finite(a, n * n) ||
              !routines.table->eig(n, vectors, a, room.values(a), room.vectors(a), room.rest(a))) {
            throw unsuitable_matrix(kNoGeneralEigenvalues, m.batch, i);
          }
          store_sorted(routines, room, vectors, a, c, i);
        });
      },
      cost * static_cast<double>(m.count));
}

}  // namespace

std::unique_ptr<Kernel> dense_eig(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.input_shape(0).num_elements() == 0) return nothing_to_do();
  const bool vectors = p.op().get_bool("compute_v");
  return with_routines(p.input_type(0), m.rows, kLapackEig,
                       [&](const auto& routines) { return eig_kernel(m, vectors, routines); });
}

}  // namespace treenail::host
