// SPDX-License-Identifier: Apache-2.0
// Singular values and vectors. Read as column-major, a = u diag(s) v^H is a^T = conj(v) diag(s)
// u^T: the right vectors of that are u as it is to be stored.
#include <limits>

#include "kernels/host/linalg/dense.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::host {
namespace {

// From this order on LAPACK is faster (docs/decisions/linear-algebra.md).
constexpr int64_t kLapackSvd = 17;

// Where the parts of one decomposition lie.
template <class W>
struct SvdRoom {
  int64_t m, n, values, u_columns, v_columns;
  int64_t of_a, of_u, of_v, of_values;
  SvdRoom(const MatrixBatch& a, Vectors vectors) : m(a.rows), n(a.columns), values(std::min(m, n)) {
    const bool full = vectors == Vectors::kFull, wanted = vectors != Vectors::kNone;
    u_columns = full ? m : values;
    v_columns = full ? n : values;
    of_a = padded<W>(m * n);
    of_u = wanted ? padded<W>(m * u_columns) : 0;
    of_v = wanted ? padded<W>(n * v_columns) : 0;
    of_values = padded<W>(values);
  }
  int64_t whole() const { return of_a + of_u + of_v + 2 * of_values; }
};

template <class W>
bool decompose(const Routines<W>& routines, const SvdRoom<W>& room, Vectors vectors, W* a) {
  W *const u = a + room.of_a, *const v = u + room.of_u, *const numbers = v + room.of_v;
  auto* const values = reinterpret_cast<Real<W>*>(numbers + room.of_values);
  if (!all_finite(a, room.m * room.n)) {
    std::fill(u, numbers + room.values, W(std::numeric_limits<Real<W>>::quiet_NaN()));
    return true;
  }
  if (!routines.table->svd(room.n, room.m, vectors, a, values, v, u,
                           numbers + 2 * room.of_values)) {
    return false;
  }
  convert(values, room.values, numbers);
  return true;
}

template <class W>
std::unique_ptr<Kernel> svd_kernel(const MatrixBatch& m, Vectors vectors,
                                   const Routines<W>& routines) {
  const SvdRoom<W> room(m, vectors);
  const int64_t work = routines.table->svd_room(room.n, room.m, vectors);
  const MatrixMemory needs(room.whole() + work / static_cast<int64_t>(sizeof(W)) + 1,
                           routines.table->svd_takes(room.n, room.m, vectors));
  const double cost = cubic_cost<W>(std::max(m.rows, m.columns), 20.0);
  return make_kernel(
      [=](RunContext& c) {
        each_matrix(c, routines, m.count, cost, needs, [&](int64_t i, W* a) {
          W *const u = a + room.of_a, *const v = u + room.of_u;
          routines.load(c.input(0), i * room.m * room.n, room.m * room.n, a);
          if (!decompose(routines, room, vectors, a)) {
            throw unsuitable_matrix(kNoSingularValues, m.batch, i);
          }
          routines.store(v + room.of_v, room.values, c.output(0), i * room.values);
          if (vectors == Vectors::kNone) return;
          const int64_t of_u = room.m * room.u_columns, of_v = room.n * room.v_columns;
          routines.store(u, of_u, c.output(1), i * of_u);
          conjugate(v, of_v);
          routines.store_transposed(v, room.n, room.n, room.v_columns, c.output(2), i * of_v);
        });
      },
      cost * static_cast<double>(m.count));
}

Vectors wanted_vectors(const OpInstance& op) {
  if (!op.get_bool("compute_uv")) return Vectors::kNone;
  return op.get_bool("full_matrices") ? Vectors::kFull : Vectors::kThin;
}

}  // namespace

std::unique_ptr<Kernel> dense_svd(const PrepareContext& p) {
  const MatrixBatch m(p.input_shape(0));
  if (p.input_shape(0).num_elements() == 0) {
    return p.op().get_bool("compute_uv") ? identity_outputs(p, {1, 2}) : nothing_to_do();
  }
  return with_routines(
      p.input_type(0), std::max(m.rows, m.columns), kLapackSvd,
      [&](const auto& routines) { return svd_kernel(m, wanted_vectors(p.op()), routines); });
}

}  // namespace treenail::host
