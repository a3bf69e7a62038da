// SPDX-License-Identifier: Apache-2.0
// LU factors of small matrices, one per vector lane, and what follows from them: solutions,
// inverses, determinants. Larger ones: kernels/host/linalg/lu.cc.
#include "kernels/cpu/linalg/lane_lu.h"

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/determinant.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

struct Extents {
  host::MatrixBatch m;
  int64_t k;
  double cost;  // of a group
  Extents(const Shape& shape, int64_t columns) : m(shape), k(columns) {
    const auto n = static_cast<double>(m.rows), right = static_cast<double>(k);
    cost = group_cost(n * (2 * n + 2 * right) + n * n * n, n * n * (n / 3 + right));
  }
  bool small(const Shape& output) const {
    return m.rows <= kMostLaneRows && k <= kMostLaneColumns && output.num_elements() > 0;
  }
  template <class T>
  double whole_cost() const {
    return cost * static_cast<double>(m.count) / kGroup<T>;
  }
};

// Of the matrix before it is factored, or of its inverse afterwards.
enum class AdjointOf { kNothing, kMatrix, kInverse };

// fill(c, first, count, x) brings the right sides of a group.
template <class T, class Fill>
KernelPtr solving_kernel(const Extents& e, AdjointOf adjoint, const char* words, const Fill& fill) {
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        T* const to = host::matrices<T>(c.output(0));
        const int64_t n = e.m.rows, size = n * e.k;
        const bool streaming = streams_lanes(to, e.m.count, size);
        each_group<T>(c, e.m.count, e.cost, [&](int64_t first, int64_t count) {
          LaneLu<T> lu(n, e.k);
          pack_lanes(from + first * n * n, count, n * n, lu.a);
          if (adjoint == AdjointOf::kMatrix) take_adjoint(lu.a, n);
          fill(c, first, count, lu.x);
          lu.factor();
          refuse_lanes(lu.singular, count, first, words, e.m.batch);
          lu.substitute_back();
          if (adjoint == AdjointOf::kInverse) take_adjoint(lu.x, n);
          unpack_lanes(lu.x, count, size, to + first * size, streaming);
        });
      },
      e.whole_cost<T>());
}

template <class T>
KernelPtr prepare_solve(const PrepareContext& p) {
  const int64_t k = host::MatrixBatch(p.output_shape(0)).columns;
  const Extents e(p.input_shape(0), k);
  if (!e.small(p.output_shape(0))) return host::dense_solve(p);
  auto fill = [size = e.m.rows * k](const RunContext& c, int64_t first, int64_t count,
                                    LaneNumber<T>* x) {
    pack_lanes(host::matrices<T>(c.input(1)) + first * size, count, size, x);
  };
  const auto adjoint = p.op().get_bool("adjoint") ? AdjointOf::kMatrix : AdjointOf::kNothing;
  return solving_kernel<T>(e, adjoint, host::kMatrixNotInvertible, fill);
}

// By the factors of the matrix itself, adjoint or not, for those are the determinant's: in its
// gradient, determinant times inverse, the error of a pivot that is near zero cancels.
template <class T>
KernelPtr prepare_inverse(const PrepareContext& p) {
  const Extents e(p.input_shape(0), host::MatrixBatch(p.input_shape(0)).rows);
  if (!e.small(p.output_shape(0))) return host::dense_solve(p);
  auto fill = [n = e.m.rows](const RunContext&, int64_t, int64_t, LaneNumber<T>* x) {
    set_identity<T>(x, n, n);
  };
  const auto adjoint = p.op().get_bool("adjoint") ? AdjointOf::kInverse : AdjointOf::kNothing;
  return solving_kernel<T>(e, adjoint, host::kInputNotInvertible, fill);
}

template <class T, class To>
void unpack_order(const Index<T>* order, int64_t count, int64_t n, To* to) {
  for (int64_t l = 0; l < count; ++l) {
    for (int64_t i = 0; i < n; ++i) to[l * n + i] = static_cast<To>(order[i][l]);
  }
}

template <class T, class To>
KernelPtr lu_kernel(const Extents& e) {
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        T* const to = host::matrices<T>(c.output(0));
        To* const order = host::matrices<To>(c.output(1));
        const int64_t n = e.m.rows;
        each_group<T>(c, e.m.count, e.cost, [&](int64_t first, int64_t count) {
          LaneLu<T> lu(n, 0);
          pack_lanes(from + first * n * n, count, n * n, lu.a);
          lu.factor();
          refuse_lanes(lu.singular, count, first, host::kInputNotInvertible, e.m.batch);
          unpack_lanes(lu.a, count, n * n, to + first * n * n);
          unpack_order<T>(lu.order, count, n, order + first * n);
        });
      },
      e.whole_cost<T>());
}

template <class T>
KernelPtr prepare_lu(const PrepareContext& p) {
  const Extents e(p.input_shape(0), 0);
  if (!e.small(p.output_shape(0))) return host::dense_lu(p);
  return p.output_type(1) == DType::kInt32 ? lu_kernel<T, int32_t>(e) : lu_kernel<T, int64_t>(e);
}

// store(c, i, product) for the determinant of each matrix.
template <class T, class Store>
KernelPtr determinant_kernel(const Extents& e, const Store& store) {
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        const int64_t n = e.m.rows;
        each_group<T>(c, e.m.count, e.cost, [&](int64_t first, int64_t count) {
          LaneLu<T> lu(n, 0);
          pack_lanes(from + first * n * n, count, n * n, lu.a);
          lu.factor();
          for (int64_t l = 0; l < count; ++l) {
            host::ScaledProduct<host::WideNumber<T>> product;
            for (int64_t i = 0; i < n; ++i) {
              product.multiply(static_cast<host::WideNumber<T>>(element(lu.a[i * (n + 1)], l)));
            }
            if (lu.exchanges[l] % 2 != 0) product.negate();
            store(c, first + l, product);
          }
        });
      },
      e.whole_cost<T>());
}

template <class T>
KernelPtr prepare_determinant(const PrepareContext& p) {
  const Extents e(p.input_shape(0), 0);
  if (e.m.rows == 0 || !e.small(p.output_shape(0))) return host::dense_determinant(p);
  return determinant_kernel<T>(e, [](RunContext& c, int64_t i, const auto& product) {
    host::matrices<T>(c.output(0))[i] = static_cast<T>(product.value());
  });
}

template <class T>
KernelPtr prepare_log_determinant(const PrepareContext& p) {
  const Extents e(p.input_shape(0), 0);
  if (e.m.rows == 0 || !e.small(p.output_shape(0))) return host::dense_log_determinant(p);
  return determinant_kernel<T>(e, [](RunContext& c, int64_t i, const auto& product) {
    host::matrices<T>(c.output(0))[i] = static_cast<T>(product.sign());
    host::matrices<T>(c.output(1))[i] = static_cast<T>(product.log_abs());
  });
}

}  // namespace

void register_lane_lu_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("Lu", {{"T", {dtype}}}, prepare_lu<T>);
    r.add("MatrixSolve", {{"T", {dtype}}}, prepare_solve<T>);
    r.add("MatrixInverse", {{"T", {dtype}}}, prepare_inverse<T>);
    r.add("MatrixDeterminant", {{"T", {dtype}}}, prepare_determinant<T>);
    r.add("LogMatrixDeterminant", {{"T", {dtype}}}, prepare_log_determinant<T>);
  });
}

}  // namespace treenail::cpu
