// SPDX-License-Identifier: Apache-2.0
// Orthonormal and triangular factors, by Householder's reflections.
#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackQr = 17;

template <class W>
std::unique_ptr<Kernel> qr_kernel(const MatrixBatch& a, int64_t columns,
                                  const Routines<W>& routines) {
  const int64_t m = a.rows, n = a.columns, work = routines.table->qr_room(m, n, columns);
  const int64_t of_a = padded<W>(m * n), of_q = padded<W>(m * columns);
  const int64_t room = of_a + of_q + work / static_cast<int64_t>(sizeof(W)) + 1;
  const double cost = cubic_cost<W>(std::max(m, n), 2.0);
  return make_kernel(
      [=](RunContext& c) {
        each_matrix(c, routines, a.count, cost, room, [&](int64_t i, W* r) {
          W* const q = r + of_a;
          routines.load_transposed(c.input(0), i * m * n, m, n, r);
          routines.table->qr(m, n, columns, r, q, q + of_q);
          routines.store_transposed(q, m, m, columns, c.output(0), i * m * columns);
          for (int64_t k = 0; k < std::min(m, n); ++k) {
            std::fill(r + k * m + k + 1, r + (k + 1) * m, W(0));
          }
          routines.store_transposed(r, m, columns, n, c.output(1), i * columns * n);
        });
      },
      cost * static_cast<double>(a.count));
}

}  // namespace

std::unique_ptr<Kernel> dense_qr(const PrepareContext& p) {
  const MatrixBatch a(p.input_shape(0));
  const int64_t columns = MatrixBatch(p.output_shape(0)).columns;
  if (p.input_shape(0).num_elements() == 0) return identity_outputs(p, {0});
  return with_routines(p.input_type(0), std::max(a.rows, a.columns), kLapackQr,
                       [&](const auto& routines) { return qr_kernel(a, columns, routines); });
}

}  // namespace treenail::host
