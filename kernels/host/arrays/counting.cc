// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/counting.cc. Elements are met in their order by one thread: sums of
// weights keep one order, and counting is bound by memory.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor.h"
#include "kernels/host/arrays/counting.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

double cost_of(const Shape& shape, double each) {
  return 20 + each * static_cast<double>(shape.num_elements());
}

// --- Bincount ---------------------------------------------------------------------------------

// Integers wrap, as everywhere.
template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <class T>
void bincount(RunContext& c) {
  const Tensor& values = c.input(0);
  const int32_t* numbers = values.data<int32_t>();
  const T* weights = c.input(2).num_elements() > 0 ? c.input(2).data<T>() : nullptr;
  T* bins = c.output(0).data<T>();
  const int64_t size = c.output(0).num_elements();
  std::fill(bins, bins + size, T(0));
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    if (numbers[i] < 0) throw_negative_number(i, numbers[i]);
    if (numbers[i] >= size) continue;
    T& bin = bins[numbers[i]];
    bin = sum_of(bin, weights != nullptr ? weights[i] : T(1));
  }
}

KernelPtr prepare_bincount(const PrepareContext& p) {
  return dispatch<int32_t, int64_t, float, double>(p.output_type(0), [&]<class T>() {
    return make_kernel([](RunContext& c) { bincount<T>(c); }, cost_of(p.input_shape(0), 1.5));
  });
}

// --- HistogramFixedWidth ----------------------------------------------------------------------

template <class T, class Count>
void histogram(RunContext& c) {
  const Tensor& values = c.input(0);
  const T* range = c.input(1).data<T>();
  const auto low = static_cast<double>(range[0]), high = static_cast<double>(range[1]);
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high)) {
    throw invalid_argument("value_range should satisfy value_range[0] < value_range[1], both ",
                           "finite, but got ", tensor_values(c.input(1)));
  }
  Count* bins = c.output(0).data<Count>();
  const int64_t count = c.output(0).num_elements();
  std::fill(bins, bins + count, Count(0));
  // Halves before the difference: it may overflow.
  const double step = (high / 2 - low / 2) / (static_cast<double>(count) / 2);
  const auto last = static_cast<double>(count - 1);
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const auto x = static_cast<double>(values.data<T>()[i]);
    if (std::isnan(x)) continue;
    const double bin = x >= high ? last : std::floor((x - low) / step);
    Count& counted = bins[static_cast<int64_t>(std::clamp(bin, 0.0, last))];
    if (counted == std::numeric_limits<Count>::max())
      throw invalid_argument("more values in one bin than ", dtype_of<Count>, " can count");
    ++counted;
  }
}

KernelPtr prepare_histogram(const PrepareContext& p) {
  const bool wide = p.output_type(0) == DType::kInt64;
  return dispatch<int32_t, int64_t, float, double>(p.input_type(0), [&]<class T>() -> KernelPtr {
    const double cost = cost_of(p.input_shape(0), 3);
    if (wide) return make_kernel([](RunContext& c) { histogram<T, int64_t>(c); }, cost);
    return make_kernel([](RunContext& c) { histogram<T, int32_t>(c); }, cost);
  });
}

// --- Bucketize --------------------------------------------------------------------------------

template <class T>
KernelPtr bucketize_kernel(const PrepareContext& p) {
  // As float: what TensorFlow's attribute holds, and what elements are compared with.
  std::vector<float> boundaries;
  for (const double x : p.op().get<std::vector<double>>("boundaries"))
    boundaries.push_back(static_cast<float>(x));
  const double each = 2 + 2 * std::log2(1.0 + static_cast<double>(boundaries.size()));
  const int64_t n = p.input_shape(0).num_elements();
  return make_kernel(
      [boundaries = std::move(boundaries), n, each](RunContext& c) {
        const T* in = c.input(0).data<T>();
        int32_t* out = c.output(0).data<int32_t>();
        c.parallel_for(n, 16384, each, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const auto x = static_cast<double>(in[i]);
            const auto at = std::partition_point(boundaries.begin(), boundaries.end(),
                                                 [x](float b) { return !(x < b); });
            out[i] = static_cast<int32_t>(at - boundaries.begin());
          }
        });
      },
      each * static_cast<double>(n));
}

KernelPtr prepare_bucketize(const PrepareContext& p) {
  return dispatch<int32_t, int64_t, float, double>(
      p.input_type(0), [&]<class T>() { return bucketize_kernel<T>(p); });
}

// --- NthElement -------------------------------------------------------------------------------

// Ascending, NaN last.
template <class T>
bool is_less(T a, T b) {
  const auto x = comparable(a), y = comparable(b);
  if (x < y) return true;
  return x == x && y != y;
}

template <class T>
KernelPtr nth_element_kernel(int64_t rows, int64_t columns, int64_t n) {
  const double cost = 20 + 4.0 * static_cast<double>(columns);
  return make_kernel(
      [=](RunContext& c) {
        const T* in = c.input(0).data<T>();
        T* out = c.output(0).data<T>();
        c.parallel_for(rows, std::max<int64_t>(1, 16384 / columns), cost,
                       [&](int64_t begin, int64_t end) {
                         std::vector<T> row(static_cast<size_t>(columns));
                         for (int64_t i = begin; i < end; ++i) {
                           std::copy_n(in + i * columns, columns, row.begin());
                           std::nth_element(row.begin(), row.begin() + n, row.end(), is_less<T>);
                           out[i] = row[static_cast<size_t>(n)];
                         }
                       });
      },
      cost * static_cast<double>(rows));
}

KernelPtr prepare_nth_element(const PrepareContext& p) {
  const Shape& input = p.input_shape(0);
  const int64_t columns = input.dim(input.rank() - 1);
  const int64_t rows = p.output_shape(0).num_elements();
  const int64_t given = scalar_int64(p.host_value(1));
  const int64_t n = p.op().get_bool("reverse") ? columns - 1 - given : given;
  return dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                  uint32_t, int64_t, uint64_t>(
      p.output_type(0), [&]<class T>() { return nth_element_kernel<T>(rows, columns, n); });
}

}  // namespace

void register_counting_kernels(KernelRegistry& r) {
  r.add("Bincount", {}, prepare_bincount);
  r.add("HistogramFixedWidth", {}, prepare_histogram);
  r.add("Bucketize", {}, prepare_bucketize);
  r.add("NthElement", {}, prepare_nth_element);
}

}  // namespace treenail::host
