// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/diagonal_bands.cc: one matrix after the other, diagonal by diagonal.
#include <algorithm>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// Diagonals `lower` to `upper` of rows x columns matrices.
struct BandGeometry {
  int64_t rows, columns, lower, upper;
  int64_t matrices;  // how many there are

  static BandGeometry of(const Shape& matrix, const Tensor& k) {
    const int rank = matrix.rank();
    const int32_t* const bounds = k.data<int32_t>();
    return {matrix.dim(rank - 2), matrix.dim(rank - 1), bounds[0], bounds[k.num_elements() - 1],
            matrix.sub(0, rank - 2).num_elements()};
  }
  int64_t elements() const { return rows * columns; }
  int64_t length(int64_t d) const {
    return std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0));
  }
  // All are stored with the length of the longest.
  int64_t longest() const {
    return std::min(rows + std::min<int64_t>(upper, 0), columns - std::max<int64_t>(lower, 0));
  }
  int64_t stored() const { return (upper - lower + 1) * longest(); }
  // body(where diagonal d begins among the stored ones, and in the matrix, its length)
  template <class Body>
  void each_diagonal(const Body& body) const {
    for (int64_t d = upper; d >= lower; --d) {
      const int64_t begin = d < 0 ? -d * columns : d;
      body((upper - d) * longest(), begin, length(d));
    }
  }
};

// body(c, g, i) for each matrix i.
template <class T, class Body>
KernelPtr band_kernel(const BandGeometry& g, int64_t moved, const Body& body) {
  const double cost = 10 + kMoveCost<T> * static_cast<double>(moved);
  return make_kernel(
      [g, moved, cost, body](RunContext& c) {
        const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(moved, 1));
        c.parallel_for(g.matrices, grain, cost, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) body(c, g, i);
        });
      },
      cost * static_cast<double>(g.matrices));
}

template <class T>
void write_diagonals(const BandGeometry& g, const T* stored, T* matrix) {
  g.each_diagonal([&](int64_t from, int64_t begin, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      matrix[begin + i * (g.columns + 1)] = stored[from + i];
    }
  });
}

template <class T>
void read_diagonals(const BandGeometry& g, const T* matrix, const T& padding, T* stored) {
  g.each_diagonal([&](int64_t to, int64_t begin, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
      stored[to + i] = matrix[begin + i * (g.columns + 1)];
    }
    fill_elements(stored + to + length, padding, g.longest() - length);
  });
}

KernelPtr prepare_matrix_diag(const PrepareContext& p) {
  const BandGeometry g = BandGeometry::of(p.output_shape(0), p.host_value(1));
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return band_kernel<T>(g, g.elements(), [](RunContext& c, const BandGeometry& g, int64_t i) {
      T* const out = elements<T>(c.output(0)) + i * g.elements();
      fill_elements(out, *elements<T>(c.input(4)), g.elements());
      write_diagonals(g, elements<T>(c.input(0)) + i * g.stored(), out);
    });
  });
}

KernelPtr prepare_matrix_diag_part(const PrepareContext& p) {
  const BandGeometry g = BandGeometry::of(p.input_shape(0), p.host_value(1));
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return band_kernel<T>(g, g.stored(), [](RunContext& c, const BandGeometry& g, int64_t i) {
      read_diagonals(g, elements<T>(c.input(0)) + i * g.elements(), *elements<T>(c.input(2)),
                     elements<T>(c.output(0)) + i * g.stored());
    });
  });
}

KernelPtr prepare_matrix_set_diag(const PrepareContext& p) {
  const BandGeometry g = BandGeometry::of(p.output_shape(0), p.host_value(2));
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return band_kernel<T>(g, g.elements(), [](RunContext& c, const BandGeometry& g, int64_t i) {
      const T* const in = elements<T>(c.input(0)) + i * g.elements();
      T* const out = elements<T>(c.output(0)) + i * g.elements();
      if (out != in) copy_elements(out, in, g.elements());
      write_diagonals(g, elements<T>(c.input(1)) + i * g.stored(), out);
    });
  });
}

}  // namespace

void register_diagonal_bands_kernels(KernelRegistry& r) {
  r.add("MatrixDiagV2", {}, prepare_matrix_diag);
  r.add("MatrixDiagPartV2", {}, prepare_matrix_diag_part);
  r.add("MatrixSetDiagV2", {}, prepare_matrix_set_diag);
}

}  // namespace treenail::host
