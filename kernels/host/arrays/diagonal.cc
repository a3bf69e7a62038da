// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/diagonal.cc. Every tensor is a batch of matrices; a diagonal steps by
// one row and one column.
#include <algorithm>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

struct Matrices {
  int64_t count;
  int64_t rows;
  int64_t columns;
  int64_t elements() const { return rows * columns; }
  int64_t diagonal() const { return std::min(rows, columns); }
};

Matrices matrices_of(const Shape& shape) {
  const int rank = shape.rank();
  return {shape.sub(0, rank - 2).num_elements(), shape.dim(rank - 2), shape.dim(rank - 1)};
}

// A tensor whose shape is some shape twice is one square matrix.
Matrices doubled(const Shape& half) { return {1, half.num_elements(), half.num_elements()}; }

template <class F>
KernelPtr per_matrix_kernel(const Matrices& m, double cost_per_element, F body) {
  const double cost = 10 + cost_per_element * static_cast<double>(m.elements());
  return make_kernel(
      [m, cost, body](RunContext& c) {
        const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(m.elements(), 1));
        c.parallel_for(m.count, grain, cost, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) body(c, i);
        });
      },
      cost * static_cast<double>(m.count));
}

KernelPtr make_diagonal(DType dtype, const Matrices& m) {
  return dispatch_element(dtype, [&]<class T>() {
    return per_matrix_kernel(m, kMoveCost<T>, [m](RunContext& c, int64_t i) {
      const T* diagonal = elements<T>(c.input(0)) + i * m.diagonal();
      T* out = elements<T>(c.output(0)) + i * m.elements();
      fill_elements(out, T(), m.elements());
      for (int64_t k = 0; k < m.diagonal(); ++k) out[k * (m.columns + 1)] = diagonal[k];
    });
  });
}

KernelPtr take_diagonal(DType dtype, const Matrices& m) {
  return dispatch_element(dtype, [&]<class T>() {
    return per_matrix_kernel(Matrices{m.count, 1, m.diagonal()}, 1.0,
                             [m](RunContext& c, int64_t i) {
                               const T* matrix = elements<T>(c.input(0)) + i * m.elements();
                               T* out = elements<T>(c.output(0)) + i * m.diagonal();
                               for (int64_t k = 0; k < m.diagonal(); ++k)
                                 out[k] = matrix[k * (m.columns + 1)];
                             });
  });
}

KernelPtr prepare_diag(const PrepareContext& p) {
  return make_diagonal(p.output_type(0), doubled(p.input_shape(0)));
}
KernelPtr prepare_diag_part(const PrepareContext& p) {
  return take_diagonal(p.output_type(0), doubled(p.output_shape(0)));
}
KernelPtr prepare_matrix_diag(const PrepareContext& p) {
  return make_diagonal(p.output_type(0), matrices_of(p.output_shape(0)));
}
KernelPtr prepare_matrix_diag_part(const PrepareContext& p) {
  return take_diagonal(p.output_type(0), matrices_of(p.input_shape(0)));
}

KernelPtr prepare_matrix_set_diag(const PrepareContext& p) {
  const Matrices m = matrices_of(p.output_shape(0));
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return per_matrix_kernel(m, kMoveCost<T>, [m](RunContext& c, int64_t i) {
      const T* in = elements<T>(c.input(0)) + i * m.elements();
      const T* diagonal = elements<T>(c.input(1)) + i * m.diagonal();
      T* out = elements<T>(c.output(0)) + i * m.elements();
      if (out != in) copy_elements(out, in, m.elements());
      for (int64_t k = 0; k < m.diagonal(); ++k) out[k * (m.columns + 1)] = diagonal[k];
    });
  });
}

KernelPtr prepare_matrix_band_part(const PrepareContext& p) {
  const Matrices m = matrices_of(p.output_shape(0));
  const int64_t lower = scalar_int64(p.host_value(1));
  const int64_t upper = scalar_int64(p.host_value(2));
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return per_matrix_kernel(m, kMoveCost<T>, [m, lower, upper](RunContext& c, int64_t i) {
      const T* in = elements<T>(c.input(0)) + i * m.elements();
      T* out = elements<T>(c.output(0)) + i * m.elements();
      for (int64_t row = 0; row < m.rows; ++row) {
        const int64_t first = lower < 0 ? 0 : std::clamp<int64_t>(row - lower, 0, m.columns);
        const int64_t last =
            upper < 0 ? m.columns : std::clamp<int64_t>(row + upper + 1, 0, m.columns);
        const int64_t kept = std::max<int64_t>(last - first, 0);
        T* to = out + row * m.columns;
        const T* from = in + row * m.columns;
        if (to != from) copy_elements(to + first, from + first, kept);
        fill_elements(to, T(), first);
        fill_elements(to + first + kept, T(), m.columns - first - kept);
      }
    });
  });
}

}  // namespace

void register_diagonal_kernels(KernelRegistry& r) {
  r.add("Diag", {}, prepare_diag);
  r.add("DiagPart", {}, prepare_diag_part);
  r.add("MatrixDiag", {}, prepare_matrix_diag);
  r.add("MatrixDiagPart", {}, prepare_matrix_diag_part);
  r.add("MatrixSetDiag", {}, prepare_matrix_set_diag);
  r.add("MatrixBandPart", {}, prepare_matrix_band_part);
}

}  // namespace treenail::host
