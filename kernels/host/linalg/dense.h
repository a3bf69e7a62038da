// SPDX-License-Identifier: Apache-2.0
// Batches of matrices that are worked on one by one, by LAPACK where they are large and by Eigen
// in double precision otherwise: the choice between the two, working memory, the way there and
// back, and the words for a matrix that cannot be decomposed.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "framework/runtime/kernel/kernel.h"
#include "kernels/eigen/routines.h"
#include "kernels/host/linalg/lapack.h"

namespace treenail::host {

template <class T>
inline constexpr bool is_complex_number = !std::is_floating_point_v<T>;

// The numbers of half the width, where there are some.
template <class W>
struct Narrower {
  using type = float;
};
template <class T>
struct Narrower<std::complex<T>> {
  using type = std::complex<float>;
};

// Double precision, for products of many.
template <class W>
using WideNumber = std::conditional_t<is_complex_number<W>, std::complex<double>, double>;

// The matrices of one input.
struct MatrixBatch {
  Shape batch;
  int64_t count;
  int64_t rows;
  int64_t columns;
  explicit MatrixBatch(const Shape& shape)
      : batch(shape.sub(0, shape.rank() - 2)),
        count(batch.num_elements()),
        rows(shape.dim(shape.rank() - 2)),
        columns(shape.dim(shape.rank() - 1)) {}
  int64_t elements() const { return rows * columns; }
};

// "Input is not invertible.", and which matrix of the batch is the first such one.
[[gnu::cold]] Error unsuitable_matrix(const char* words, const Shape& batch, int64_t index);

inline constexpr const char* kNotPositiveDefinite =
    "Cholesky decomposition was not successful. The input might not be valid.";
inline constexpr const char* kNoEigenvalues =
    "Self-adjoint eigen decomposition was not successful. The input might not be valid.";
inline constexpr const char* kNoGeneralEigenvalues =
    "Eigen decomposition was not successful. The input might not be valid.";
inline constexpr const char* kNoSchurForm =
    "Schur decomposition was not successful. The input might not be valid.";
inline constexpr const char* kNoSingularValues =
    "Singular value decomposition was not successful. The input might not be valid.";
inline constexpr const char* kMatrixNotInvertible = "Input matrix is not invertible.";
inline constexpr const char* kInputNotInvertible = "Input is not invertible.";
inline constexpr const char* kRankDeficient =
    "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
    "larger l2_regularizer > 0.";
constexpr const char* tridiagonal_words(bool pivoting) {
  return pivoting ? "The matrix is not invertible."
                  : "The matrix is either not invertible, or requires pivoting. Try setting "
                    "partial_pivoting = True.";
}

// Memory at a multiple of 64 bytes for one matrix after the other. Errors: ResourceExhausted.
template <class W>
class Workspace {
 public:
  explicit Workspace(int64_t elements)
      : bytes_(static_cast<size_t>(checked_product(elements, sizeof(W)))),
        data_(static_cast<W*>(Allocator::host().allocate(bytes_))) {}
  ~Workspace() { Allocator::host().deallocate(data_, bytes_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  W* data() const { return data_; }

 private:
  size_t bytes_;
  W* data_;
};

// In place.
template <class W>
void conjugate(W* x, int64_t count) {
  if constexpr (is_complex_number<W>) {
    for (int64_t i = 0; i < count; ++i) x[i] = std::conj(x[i]);
  }
}

template <class W>
bool all_finite(const W* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(std::real(x[i])) || !std::isfinite(std::imag(x[i]))) return false;
  }
  return true;
}

// Elements to a multiple of 64 bytes.
template <class W>
constexpr int64_t padded(int64_t elements) {
  constexpr int64_t kUnit = 64 / sizeof(W);
  return (elements + kUnit - 1) / kUnit * kUnit;
}
// n pivots, counted in Ws.
template <class W>
constexpr int64_t pivot_room(int64_t n) {
  return padded<W>((n * static_cast<int64_t>(sizeof(int32_t)) + sizeof(W) - 1) / sizeof(W));
}

template <class To, class From>
void convert(const From* from, int64_t count, To* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

// to[c, r] = from[r, c] for a matrix whose rows are `stride` apart, in blocks that stay in the
// cache.
template <class To, class From>
void convert_transposed(const From* from, int64_t stride, int64_t rows, int64_t columns, To* to) {
  constexpr int64_t kBlock = 32;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t c1 = std::min(columns, c0 + kBlock);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) {
          to[c * rows + r] = static_cast<To>(from[r * stride + c]);
        }
      }
    }
  }
}

template <class T>
const T* matrices(const Tensor& tensor) {
  return static_cast<const T*>(tensor.raw());
}
template <class T>
T* matrices(Tensor& tensor) {
  return static_cast<T*>(tensor.raw());
}

// Whose routines work on matrices in numbers W, and how these stand in tensors.
template <class W>
struct Routines {
  using Narrow = typename Narrower<W>::type;
  const DenseRoutines<W>* table;
  bool of_lapack;
  bool narrow;  // tensors hold numbers of half the width

  // Elements [first, first + count) of a tensor.
  void load(const Tensor& from, int64_t first, int64_t count, W* to) const {
    if (narrow) {
      convert(matrices<Narrow>(from) + first, count, to);
    } else {
      convert(matrices<W>(from) + first, count, to);
    }
  }
  void store(const W* from, int64_t count, Tensor& to, int64_t first) const {
    if (narrow) {
      convert(from, count, matrices<Narrow>(to) + first);
    } else {
      convert(from, count, matrices<W>(to) + first);
    }
  }
  // Elements `stride` apart in the tensor.
  void store_apart(const W* from, int64_t count, int64_t stride, Tensor& to, int64_t first) const {
    const auto scatter = [&](auto* x) {
      for (int64_t i = 0; i < count; ++i) convert(from + i, 1, x + i * stride);
    };
    if (narrow) {
      scatter(matrices<Narrow>(to) + first);
    } else {
      scatter(matrices<W>(to) + first);
    }
  }
  // A whole m x n matrix, column-major on this side; `stride`: from one of its columns to the next.
  void load_transposed(const Tensor& from, int64_t first, int64_t m, int64_t n, W* to) const {
    if (narrow) {
      convert_transposed(matrices<Narrow>(from) + first, n, m, n, to);
    } else {
      convert_transposed(matrices<W>(from) + first, n, m, n, to);
    }
  }
  void store_transposed(const W* from, int64_t stride, int64_t m, int64_t n, Tensor& to,
                        int64_t first) const {
    if (narrow) {
      convert_transposed(from, stride, n, m, matrices<Narrow>(to) + first);
    } else {
      convert_transposed(from, stride, n, m, matrices<W>(to) + first);
    }
  }
};

// Calls f(Routines<W>{...}) for matrices of order n: LAPACK's from the order `from` on, where there
// is one that is fast, else Eigen's.
template <class F>
std::unique_ptr<Kernel> with_routines(DType dtype, int64_t n, int64_t from, F&& f) {
  using C = std::complex<float>;
  using Z = std::complex<double>;
  constexpr int64_t kMost = 30000;  // sizes of LAPACK's working memory have 32 bits
  const LapackApi* const api = n >= from && n <= kMost ? lapack().api : nullptr;
  const bool large = api != nullptr;
  switch (dtype) {
    case DType::kFloat32:
      if (large) return f(Routines<float>{&api->single, true, false});
      return f(Routines<double>{&eigen::routines<double>(), false, true});
    case DType::kFloat64:
      return f(Routines<double>{large ? &api->real : &eigen::routines<double>(), large, false});
    case DType::kComplex64:
      if (large) return f(Routines<C>{&api->complex_single, true, false});
      return f(Routines<Z>{&eigen::routines<Z>(), false, true});
    default:
      return f(Routines<Z>{large ? &api->complex : &eigen::routines<Z>(), large, false});
  }
}

// The same for what is computed in double precision whatever the dtype.
template <class F>
std::unique_ptr<Kernel> with_wide_routines(DType dtype, int64_t n, int64_t from, F&& f) {
  using Z = std::complex<double>;
  const DType wide = is_complex(dtype) ? DType::kComplex128 : DType::kFloat64;
  const bool narrow = dtype != wide;
  return with_routines(wide, n, from, [&](const auto& routines) -> std::unique_ptr<Kernel> {
    using R = std::remove_cvref_t<decltype(routines)>;
    if constexpr (std::is_same_v<R, Routines<double>> || std::is_same_v<R, Routines<Z>>) {
      return f(R{routines.table, routines.of_lapack, narrow});
    } else {
      return nullptr;  // never: the dtype is a wide one
    }
  });
}

// Errors: Internal, where LAPACK has not accepted a call for matrix i of the batch.
void check_refusal(int64_t i);

// What one matrix at a time needs.
struct MatrixMemory {
  MatrixMemory(int64_t elements, int64_t bytes_taken = 0) : room(elements), takes(bytes_taken) {}
  int64_t room;   // that it is given, in Ws
  int64_t takes;  // bytes that the library takes by itself
};

// body(i, memory) for each matrix, with memory for it; cost: of one matrix, in ns.
template <class W, class Body>
void each_matrix(const RunContext& c, const Routines<W>& routines, int64_t count, double cost,
                 const MatrixMemory& needs, const Body& body) {
  constexpr double kPieceNs = 50000;
  const LapackScope scope(routines.of_lapack);
  const auto grain = static_cast<int64_t>(std::clamp(kPieceNs / cost, 1.0, 1e6));
  c.parallel_for(count, grain, cost, [&](int64_t begin, int64_t end) {
    const Workspace<W> memory(needs.room);
    // Never touched: counts for what the library takes.
    const Workspace<std::byte> claim(needs.takes);
    for (int64_t i = begin; i < end; ++i) {
      body(i, memory.data());
      if (routines.of_lapack) check_refusal(i);
    }
  });
}

// Nanoseconds of n³ multiply-adds times `each` and a call.
template <class T>
double cubic_cost(int64_t n, double each) {
  const auto order = static_cast<double>(n);
  return 500 + (is_complex_number<T> ? 0.8 : 0.2) * each * order * order * order;
}

// Sets these outputs to identities, [..., m, k]: what is left of a decomposition of nothing.
std::unique_ptr<Kernel> identity_outputs(const PrepareContext& p,
                                         std::initializer_list<int> outputs);

inline std::unique_ptr<Kernel> nothing_to_do() {
  return make_kernel([](RunContext&) {});
}

}  // namespace treenail::host
