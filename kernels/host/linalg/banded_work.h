// SPDX-License-Identifier: Apache-2.0
// What kernels for long systems of a few diagonals share: one system of a batch after the other, in
// double precision, with working memory. Half-width numbers are widened on the way in.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>

#include "kernels/host/linalg/dense.h"

namespace treenail::host {

// Nanoseconds of one multiply-add.
template <class T>
inline constexpr double kBandedStepNs = is_complex_number<T> ? 2.0 : 0.5;

// Maker<T>::prepare for the dtype of the first input.
template <template <class> class Maker>
std::unique_ptr<Kernel> prepare_by_dtype(const PrepareContext& p) {
  switch (p.input_type(0)) {
    case DType::kFloat32:
      return Maker<float>::prepare(p);
    case DType::kFloat64:
      return Maker<double>::prepare(p);
    case DType::kComplex64:
      return Maker<std::complex<float>>::prepare(p);
    default:
      return Maker<std::complex<double>>::prepare(p);
  }
}

// body(i, memory) for each of `count` systems, with memory for so many Ws.
template <class W, class Body>
void each_system(const RunContext& c, int64_t count, double cost, int64_t room, const Body& body) {
  constexpr double kPieceNs = 50000;
  const auto grain = static_cast<int64_t>(std::clamp(kPieceNs / (cost + 1), 1.0, 1e6));
  c.parallel_for(count, grain, cost, [&](int64_t begin, int64_t end) {
    const Workspace<W> memory(room);
    for (int64_t i = begin; i < end; ++i) body(i, memory.data());
  });
}

// x -= factor * y, for rows of n numbers.
template <class W>
void subtract_multiple(W factor, const W* y, int64_t n, W* x) {
  for (int64_t i = 0; i < n; ++i) x[i] -= factor * y[i];
}
template <class W>
void divide_row(W divisor, int64_t n, W* x) {
  for (int64_t i = 0; i < n; ++i) x[i] /= divisor;
}

}  // namespace treenail::host
