// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of Hermitian matrices. Read as column-major, a matrix is its
// conjugate, whose eigenvectors are the conjugates of its own.
#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackEigh = 32;

// The lower triangle as it stands, zeros elsewhere.
template <class W>
void load_lower(const Routines<W>& routines, const Tensor& from, int64_t first, int64_t n, W* a) {
  for (int64_t r = 0; r < n; ++r) {
    routines.load(from, first + r * n, r + 1, a + r * n);
    std::fill(a + r * n + r + 1, a + (r + 1) * n, W(0));
  }
}

template <class W>
std::unique_ptr<Kernel> eigh_kernel(const MatrixBatch& m, bool vectors,
                                    const Routines<W>& routines) {
  const int64_t n = m.rows, work = routines.table->eigh_room(n, vectors);
  const int64_t of_a = padded<W>(n * n), of_values = padded<W>(n);
  const MatrixMemory needs(of_a + 2 * of_values + work / static_cast<int64_t>(sizeof(W)) + 1,
                           routines.table->eigh_takes(n));
  const double cost = cubic_cost<W>(n, vectors ? 9.0 : 2.0);
  return make_kernel(
      [=](RunContext& c) {
        each_matrix(c, routines, m.count, cost, needs, [&](int64_t i, W* a) {
          W* const numbers = a + of_a;
          auto* const values = reinterpret_cast<Real<W>*>(numbers + of_values);
          load_lower(routines, c.input(0), i * n * n, n, a);
          if (!all_finite(a, n * n) ||
              !routines.table->eigh(n, vectors, a, values, numbers + 2 * of_values)) {
            throw unsuitable_matrix(kNoEigenvalues, m.batch, i);
          }
          convert(values, n, numbers);
          routines.store(numbers, n, c.output(0), i * n);
          if (!vectors) return;
          conjugate(a, n * n);
          routines.store_transposed(a, n, n, n, c.output(1), i * n * n);
        });
      },
      cost * static_cast<double>(m.count));
}

}  // namespace

std::unique_ptr<Kernel> dense_eigh(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.output_shape(0).num_elements() == 0) return nothing_to_do();
  const bool vectors = p.op().get_bool("compute_v");
  return with_routines(p.input_type(0), m.rows, kLapackEigh,
                       [&](const auto& routines) { return eigh_kernel(m, vectors, routines); });
}

}  // namespace treenail::host
