// SPDX-License-Identifier: Apache-2.0
// TopK, InTopK and Where of framework/ops/ordering.cc. Unique: unique.cc.
#include <algorithm>
#include <cmath>
#include <complex>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- TopK -------------------------------------------------------------------------------------

// Whether element a of a row stands before element b: larger, or equal and with the lower index.
// NaN is larger than any number.
template <class T>
struct Before {
  const T* row;
  bool operator()(int32_t a, int32_t b) const {
    const auto x = comparable(row[a]);
    const auto y = comparable(row[b]);
    if (x > y) return true;
    if (x < y) return false;
    if (x == y) return a < b;
    const bool x_is_nan = x != x;
    return x_is_nan == (y != y) ? a < b : x_is_nan;
  }
};

// Keeps the k first of a row in a heap with the last of them on top, in the place of the result.
template <class T>
void top_k_row(const T* row, int64_t n, int64_t k, T* values, int32_t* indices) {
  if (k == 0) return;
  const Before<T> before{row};
  for (int64_t i = 0; i < k; ++i) indices[i] = static_cast<int32_t>(i);
  std::make_heap(indices, indices + k, before);
  for (int64_t i = k; i < n; ++i) {
    if (!before(static_cast<int32_t>(i), indices[0])) continue;
    std::pop_heap(indices, indices + k, before);
    indices[k - 1] = static_cast<int32_t>(i);
    std::push_heap(indices, indices + k, before);
  }
  std::sort_heap(indices, indices + k, before);
  for (int64_t i = 0; i < k; ++i) values[i] = row[indices[i]];
}

template <class T>
KernelPtr top_k_kernel(int64_t rows, int64_t n, int64_t k) {
  const double cost = 10 + 2.0 * static_cast<double>(n) + 20.0 * static_cast<double>(k);
  return make_kernel(
      [rows, n, k, cost](RunContext& c) {
        const T* input = c.input(0).data<T>();
        T* values = c.output(0).data<T>();
        int32_t* indices = c.output(1).data<int32_t>();
        c.parallel_for(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)), cost,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i)
                           top_k_row(input + i * n, n, k, values + i * k, indices + i * k);
                       });
      },
      cost * static_cast<double>(rows));
}

KernelPtr prepare_top_k(const PrepareContext& p) {
  const Shape& input = p.input_shape(0);
  const int64_t n = input.dim(input.rank() - 1);
  const int64_t rows = input.sub(0, input.rank() - 1).num_elements();
  const int64_t k = p.output_shape(0).dim(input.rank() - 1);
  return dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                  uint32_t, int64_t, uint64_t>(
      p.output_type(0), [&]<class T>() { return top_k_kernel<T>(rows, n, k); });
}

// --- InTopK -----------------------------------------------------------------------------------

// Fewer than k predictions are larger than the target's; a row that is not finite tells nothing.
bool in_top_k(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !std::isfinite(row[target])) return false;
  int64_t larger = 0;
  for (int64_t i = 0; i < classes; ++i) {
    if (!std::isfinite(row[i])) return false;
    larger += row[i] > row[target] ? 1 : 0;
  }
  return larger < k;
}

template <class Index>
KernelPtr in_top_k_kernel(const PrepareContext& p) {
  const int64_t batch = p.input_shape(0).dim(0);
  const int64_t classes = p.input_shape(0).dim(1);
  const int64_t k = scalar_int64(p.host_value(2));
  const double cost = 5 + static_cast<double>(classes);
  return make_kernel(
      [batch, classes, k, cost](RunContext& c) {
        const float* predictions = c.input(0).data<float>();
        const Index* targets = c.input(1).data<Index>();
        bool* out = c.output(0).data<bool>();
        c.parallel_for(batch, std::max<int64_t>(1, 32768 / std::max<int64_t>(classes, 1)), cost,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i)
                           out[i] = in_top_k(predictions + i * classes, classes, targets[i], k);
                       });
      },
      cost * static_cast<double>(batch));
}

KernelPtr prepare_in_top_k(const PrepareContext& p) {
  return p.input_type(1) == DType::kInt32 ? in_top_k_kernel<int32_t>(p)
                                          : in_top_k_kernel<int64_t>(p);
}

// --- Where ------------------------------------------------------------------------------------

template <class T>
bool is_true(const T& x) {
  return comparable(x) != decltype(comparable(x))(0);
}

template <class T>
void where(RunContext& c) {
  const Tensor& input = c.input(0);
  const T* values = input.data<T>();
  const int64_t n = input.num_elements();
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += is_true(values[i]) ? 1 : 0;
  const int rank = input.rank();
  Tensor output(DType::kInt64, Shape({count, rank}));
  int64_t* out = output.data<int64_t>();
  int64_t* const end = out + count * rank;  // held: a feed may be written meanwhile
  int64_t place[kMaxRank] = {};
  for (int64_t i = 0; i < n; ++i) {
    if (is_true(values[i]) && out != end) out = std::copy(place, place + rank, out);
    for (int axis = rank; axis-- > 0;) {
      if (++place[axis] < input.dim(axis)) break;
      place[axis] = 0;
    }
  }
  std::fill(out, end, 0);
  c.set_output(0, std::move(output));
}

KernelPtr prepare_where(const PrepareContext& p) {
  const double cost = 50 + 3.0 * static_cast<double>(p.input_shape(0).num_elements());
  return dispatch<bool, float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t,
                  int32_t, uint32_t, int64_t, uint64_t, std::complex<float>, std::complex<double>>(
      p.input_type(0), [&]<class T>() -> KernelPtr { return make_kernel(where<T>, cost); });
}

}  // namespace

void register_ordering_kernels(KernelRegistry& r) {
  r.add("TopK", {}, prepare_top_k);
  r.add("InTopK", {}, prepare_in_top_k);
  r.add("Where", {}, prepare_where);
}

}  // namespace treenail::host
