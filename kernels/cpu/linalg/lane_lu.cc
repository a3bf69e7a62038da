// SPDX-License-Identifier: Apache-2.0
// LU factors of small matrices, one per vector lane, and what follows from them: solutions,
// inverses, determinants. Larger ones: kernels/host/linalg/lu.cc.
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lanes.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/determinant.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

template <class T>
using Index = LaneMask<T>;

// A group of matrices and what their rows stand beside: right sides, the order of the rows.
template <class T>
struct LaneLu {
  using L = LaneNumber<T>;
  L a[kMostLaneRows * kMostLaneRows];
  L x[kMostLaneRows * kMostLaneColumns];
  Index<T> order[kMostLaneRows];
  Index<T> exchanges;  // their number
  Index<T> singular;
  int64_t n, k;

  LaneLu(int64_t rows, int64_t columns) : n(rows), k(columns) {}
  void factor();
  void substitute_back();

 private:
  L multiples_[kMostLaneRows];  // of the pivot's row, for each row below

  Index<T> pivot_row(int64_t j) const;
  template <class V>
  V bring_up(Index<T> pivot, int64_t j, int64_t width, V* column);
  void eliminate(Index<T> pivot, int64_t j, int64_t width, L* column);
};

template <class T>
TN_INLINE Index<T> all_lanes(int64_t i) {
  return splat<Index<T>>(static_cast<ElementOf<Index<T>>>(i));
}

// The row at or below j whose element in column j is greatest, the first of equals; complex ones
// compared as LAPACK does.
template <class T>
Index<T> LaneLu<T>::pivot_row(int64_t j) const {
  Index<T> row = all_lanes<T>(j);
  LaneReal<T> greatest = size_of(a[j * n + j]);
  for (int64_t i = j + 1; i < n; ++i) {
    const LaneReal<T> size = size_of(a[i * n + j]);
    const Index<T> greater = size > greatest;
    greatest = greater ? size : greatest;
    row = greater ? all_lanes<T>(i) : row;
  }
  return row;
}

// Exchanges row j and the pivot's in one column of rows that are `width` apart; gives what is in
// row j then.
template <class T>
template <class V>
TN_INLINE V LaneLu<T>::bring_up(Index<T> pivot, int64_t j, int64_t width, V* column) {
  const V was = column[j * width];
  V now = was;
  for (int64_t i = j + 1; i < n; ++i) {
    const Index<T> here = pivot == all_lanes<T>(i);
    const V v = column[i * width];
    column[i * width] = choose(here, was, v);
    now = choose(here, v, now);
  }
  return column[j * width] = now;
}

template <class T>
TN_INLINE void LaneLu<T>::eliminate(Index<T> pivot, int64_t j, int64_t width, L* column) {
  const L top = bring_up(pivot, j, width, column);
  for (int64_t i = j + 1; i < n; ++i) {
    column[i * width] = mul_add(-multiples_[i], top, column[i * width]);
  }
}

// a becomes L and U, x becomes L^-1 P x.
template <class T>
void LaneLu<T>::factor() {
  exchanges = singular = Index<T>{};
  for (int64_t i = 0; i < n; ++i) order[i] = all_lanes<T>(i);
  for (int64_t j = 0; j < n; ++j) {
    const Index<T> row = pivot_row(j);
    exchanges -= row != all_lanes<T>(j);
    for (int64_t c = 0; c < j; ++c) bring_up(row, j, n, a + c);
    bring_up(row, j, 1, order);
    const L pivot = bring_up(row, j, n, a + j);
    singular |= is_zero(pivot);
    // Under a pivot of zero there is nothing to eliminate.
    const L inverse = choose(is_zero(pivot), L{}, reciprocal(pivot));
    for (int64_t i = j + 1; i < n; ++i) {
      a[i * n + j] = multiples_[i] = times(a[i * n + j], inverse);
    }
    for (int64_t c = j + 1; c < n; ++c) eliminate(row, j, n, a + c);
    for (int64_t c = 0; c < k; ++c) eliminate(row, j, k, x + c);
  }
}

// x becomes U^-1 x.
template <class T>
void LaneLu<T>::substitute_back() {
  for (int64_t i = n - 1; i >= 0; --i) {
    const L inverse = reciprocal(a[i * n + i]);
    for (int64_t c = 0; c < k; ++c) {
      L sum = x[i * k + c];
      for (int64_t j = i + 1; j < n; ++j) sum = mul_add(-a[i * n + j], x[j * k + c], sum);
      x[i * k + c] = times(sum, inverse);
    }
  }
}

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

template <class T>
void add_for(KernelRegistry& r, DType dtype) {
  r.add("Lu", {{"T", {dtype}}}, prepare_lu<T>);
  r.add("MatrixSolve", {{"T", {dtype}}}, prepare_solve<T>);
  r.add("MatrixInverse", {{"T", {dtype}}}, prepare_inverse<T>);
  r.add("MatrixDeterminant", {{"T", {dtype}}}, prepare_determinant<T>);
  r.add("LogMatrixDeterminant", {{"T", {dtype}}}, prepare_log_determinant<T>);
}

}  // namespace

void register_lane_lu_kernels(KernelRegistry& r) {
  add_for<float>(r, DType::kFloat32);
  add_for<double>(r, DType::kFloat64);
  add_for<std::complex<float>>(r, DType::kComplex64);
  add_for<std::complex<double>>(r, DType::kComplex128);
}

}  // namespace treenail::cpu
