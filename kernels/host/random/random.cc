// SPDX-License-Identifier: Apache-2.0
// RandomShuffle and Multinomial of framework/ops/random.cc: permuting rows and drawing classes.
// Other distributions: kernels/cpu/random/random.cc.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "framework/base/error.h"
#include "framework/base/philox.h"
#include "framework/runtime/kernel/kernel_random.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- RandomShuffle ----------------------------------------------------------------------------

// A Fisher-Yates shuffle from the front; number i of the stream moves place i.
void shuffle(const Philox& stream, int64_t* order, int64_t n) {
  std::iota(order, order + n, int64_t{0});
  Philox::Block words = {};
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (i % 4 == 0) words = stream(static_cast<uint64_t>(i / 4));
    const uint64_t left = static_cast<uint64_t>(n - i);
    std::swap(order[i], order[i + static_cast<int64_t>(words[static_cast<size_t>(i % 4)] % left)]);
  }
}

KernelPtr prepare_shuffle(const PrepareContext& p) {
  const Shape& shape = p.input_shape(0);
  const int64_t rows = shape.rank() == 0 ? 1 : shape.dim(0);
  const int64_t row = rows == 0 ? 0 : shape.num_elements() / rows;
  return dispatch_element(p.output_type(0), [&]<class T>() -> KernelPtr {
    const double row_cost = 5 + kMoveCost<T> * static_cast<double>(row);
    return make_kernel(
        [rows, row, row_cost, stream = CountedStream(p)](RunContext& c) {
          const T* from = elements<T>(c.input(0));
          T* to = elements<T>(c.output(0));
          if (rows <= 1 || row == 0) {
            copy_elements(to, from, rows * row);
            return;
          }
          auto* order = reinterpret_cast<int64_t*>(c.scratch());
          shuffle(stream.next(static_cast<uint64_t>(rows - 1 + 3) / 4), order, rows);
          c.parallel_for(rows, std::max<int64_t>(1, kMoveGrain<T> / row), row_cost,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             copy_elements(to + i * row, from + order[i] * row, row);
                         });
        },
        50 + (10 + row_cost) * static_cast<double>(rows),
        static_cast<size_t>(rows) * sizeof(int64_t));
  });
}

// --- Multinomial ------------------------------------------------------------------------------

double wide(float x) { return x; }
double wide(double x) { return x; }
double wide(Float16 x) { return static_cast<float>(x); }
double wide(BFloat16 x) { return static_cast<float>(x); }

// Running sums of exp(logit - maximum), not normalised; logits that are not finite add nothing.
// Returns the total.
template <class T>
double cumulate(const T* logits, int64_t classes, double* sums) {
  double maximum = std::numeric_limits<double>::lowest();
  for (int64_t j = 0; j < classes; ++j) {
    if (std::isfinite(wide(logits[j]))) maximum = std::max(maximum, wide(logits[j]));
  }
  double total = 0;
  for (int64_t j = 0; j < classes; ++j) {
    if (std::isfinite(wide(logits[j]))) total += std::exp(wide(logits[j]) - maximum);
    sums[j] = total;
  }
  return total;
}

// Number i of the stream, uniform in [0, 1): half a block each.
double unit_double(const Philox& stream, uint64_t i) {
  const Philox::Block block = stream(i / 2);
  const size_t at = static_cast<size_t>(i % 2) * 2;
  const uint64_t fraction = (static_cast<uint64_t>(block[at] & 0xfffffu) << 32) | block[at + 1];
  return std::bit_cast<double>(fraction | (uint64_t{1023} << 52)) - 1.0;
}

template <class T, class Out>
KernelPtr multinomial_kernel(const PrepareContext& p) {
  const int64_t batch = p.input_shape(0).dim(0);
  const int64_t classes = p.input_shape(0).dim(1);
  const int64_t samples = p.output_shape(0).dim(1);
  const double row_cost = 10.0 * static_cast<double>(classes) + 40.0 * static_cast<double>(samples);
  return make_kernel(
      [batch, classes, samples, row_cost, stream = CountedStream(p)](RunContext& c) {
        if (batch == 0 || samples == 0) return;
        const Philox numbers = stream.next(static_cast<uint64_t>(batch) *
                                           static_cast<uint64_t>((samples + 3) / 4 * 8) * 256);
        auto* sums = reinterpret_cast<double*>(c.scratch());
        const T* logits = c.input(0).data<T>();
        Out* out = c.output(0).data<Out>();
        c.parallel_for(batch, 1, row_cost, [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b) {
            double* row = sums + b * classes;
            const double total = cumulate(logits + b * classes, classes, row);
            if (total == 0) throw invalid_argument("row ", b, " of logits has no finite element");
            for (int64_t j = 0; j < samples; ++j) {
              const double wanted =
                  unit_double(numbers, static_cast<uint64_t>(b * samples + j)) * total;
              const int64_t found = std::upper_bound(row, row + classes, wanted) - row;
              out[b * samples + j] = static_cast<Out>(found);
            }
          }
        });
      },
      row_cost * static_cast<double>(batch), static_cast<size_t>(batch * classes) * sizeof(double));
}

KernelPtr prepare_multinomial(const PrepareContext& p) {
  return dispatch<float, double, Float16, BFloat16>(p.input_type(0), [&p]<class T>() {
    return p.output_type(0) == DType::kInt32 ? multinomial_kernel<T, int32_t>(p)
                                             : multinomial_kernel<T, int64_t>(p);
  });
}

}  // namespace

void register_random_kernels(KernelRegistry& r) {
  r.add("RandomShuffle", {}, prepare_shuffle);
  r.add("Multinomial", {}, prepare_multinomial);
}

}  // namespace treenail::host
