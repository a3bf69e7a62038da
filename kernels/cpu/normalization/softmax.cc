// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and the cross entropies, row by row, in float or double; rows of 16-bit
// elements are widened into scratch memory first. The last elements of a row run the same vector
// code on a padded vector.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/normalization/last_axis.h"
#include "kernels/cpu/simd/vec_math.h"

namespace treenail::cpu {
namespace {

template <class C>
inline constexpr C kLowest = -std::numeric_limits<C>::infinity();

// What every op here needs of a row. NaN in it, or +inf, makes the sum NaN and with it every
// result.
template <class C>
struct Row {
  const C* x;
  int64_t n;
  C largest = kLowest<C>;
  C sum = 0;  // of exp(x - largest)

  Row(const C* x, int64_t n) : x(x), n(n) {
    using V = Vec256<C>;  // of a row that lies in memory
    V most = splat<V>(kLowest<C>);
    for_vectors<V>(x, n, kLowest<C>, [&](V v, int64_t, int64_t) { most = v > most ? v : most; });
    for (int i = 0; i < kLanesOf<V>; ++i) largest = std::max<C>(largest, most[i]);
  }

  // Adds up the exponentials; f(exp, x - largest, index, count) sees each vector, and may write
  // over x there.
  template <class F>
  void add_exponentials(F f) {
    Vec<C> total{};
    for_vectors<Vec<C>>(x, n, kLowest<C>, [&](Vec<C> v, int64_t i, int64_t some) {
      const Vec<C> d = v - largest;
      const Vec<C> e = exp_of_negative(d);
      total += e;
      f(e, d, i, some);
    });
    sum = sum_lanes<C>(total);
  }
};

// In all of these y may be x.
template <class C>
void softmax_row(const C* x, C* y, int64_t n) {
  Row<C> row(x, n);
  row.add_exponentials(
      [&](Vec<C> e, Vec<C>, int64_t i, int64_t some) { store_some(y + i, e, some); });
  const Vec<C> inverse = splat<Vec<C>>(C(1) / row.sum);
  for_vectors<Vec<C>>(
      y, n, C(0), [&](Vec<C> e, int64_t i, int64_t some) { store_some(y + i, e * inverse, some); });
}

template <class C>
void log_softmax_row(const C* x, C* y, int64_t n) {
  Row<C> row(x, n);
  row.add_exponentials([](Vec<C>, Vec<C>, int64_t, int64_t) {});
  const C largest = row.largest, log_sum = std::log(row.sum);
  for_vectors<Vec<C>>(x, n, C(0), [&](Vec<C> v, int64_t i, int64_t some) {
    store_some(y + i, v - largest - log_sum, some);
  });
}

template <class C>
void cross_entropy_row(const C* x, const C* labels, C* loss, C* y, int64_t n) {
  if (n == 0) {
    *loss = 0;  // an empty sum
    return;
  }
  Row<C> row(x, n);
  Vec<C> weight{}, weighted{};
  auto labels_at = [labels](int64_t i, int64_t some) {
    return some == kLanes<C> ? load<Vec<C>>(labels + i)
                             : load_filled<Vec<C>>(labels + i, some, C(0));
  };
  row.add_exponentials([&](Vec<C> e, Vec<C> d, int64_t i, int64_t some) {
    const Vec<C> label = labels_at(i, some);
    weight += label;
    weighted += label == 0 ? Vec<C>{} : label * d;
    store_some(y + i, e, some);
  });
  *loss = std::log(row.sum) * sum_lanes<C>(weight) - sum_lanes<C>(weighted);
  const Vec<C> inverse = splat<Vec<C>>(C(1) / row.sum);
  for_vectors<Vec<C>>(y, n, C(0), [&](Vec<C> e, int64_t i, int64_t some) {
    store_some(y + i, e * inverse - labels_at(i, some), some);
  });
}

template <class C>
void sparse_cross_entropy_row(const C* x, int64_t label, C* loss, C* y, int64_t n) {
  Row<C> row(x, n);
  const C at_label = x[label] - row.largest;
  row.add_exponentials(
      [&](Vec<C> e, Vec<C>, int64_t i, int64_t some) { store_some(y + i, e, some); });
  *loss = std::log(row.sum) - at_label;
  const Vec<C> inverse = splat<Vec<C>>(C(1) / row.sum);
  for_vectors<Vec<C>>(
      y, n, C(0), [&](Vec<C> e, int64_t i, int64_t some) { store_some(y + i, e * inverse, some); });
  y[label] -= C(1);
}

template <class C, void (*kRow)(const C*, C*, int64_t)>
std::unique_ptr<Kernel> prepare_rows(const PrepareContext& c) {
  const Rows r(c.input_shape(0));
  return make_kernel(
      [r](RunContext& c) {
        if (r.columns == 0) return;
        float* const scratch = reinterpret_cast<float*>(c.scratch());
        c.parallel_for(r.rows, r.grain, r.cost_per_row, [&](int64_t first, int64_t last) {
          const int64_t begin = first * r.columns, end = last * r.columns;
          const C* x = read_rows<C>(c.input(0), scratch, begin, end);
          C* y = written_rows<C>(c.output(0), scratch);
          for (int64_t i = begin; i < end; i += r.columns) kRow(x + i, y + i, r.columns);
          finish_rows(c.output(0), scratch, begin, end);
        });
      },
      r.cost, scratch_for(c.input_type(0), r, 1));
}

// Shared by both losses: row(x, y, loss, index of the row) for each row, results narrowed where
// needed.
template <class C, class F>
void run_losses(RunContext& c, const Rows& r, F row) {
  float* const scratch = reinterpret_cast<float*>(c.scratch());
  float* const losses = scratch + r.rows * r.columns;
  c.parallel_for(r.rows, r.grain, r.cost_per_row, [&](int64_t first, int64_t last) {
    const int64_t begin = first * r.columns, end = last * r.columns;
    const C* x = read_rows<C>(c.input(0), scratch, begin, end);
    C* y = written_rows<C>(c.output(1), scratch);
    C* loss = written_rows<C>(c.output(0), losses);
    for (int64_t i = first; i < last; ++i) row(x + i * r.columns, y + i * r.columns, loss + i, i);
    finish_rows(c.output(1), scratch, begin, end);
    finish_rows(c.output(0), losses, first, last);
  });
}

template <class C>
std::unique_ptr<Kernel> prepare_cross_entropy(const PrepareContext& c) {
  const Rows r(c.input_shape(0));
  return make_kernel(
      [r](RunContext& c) {
        float* const wide_labels = reinterpret_cast<float*>(c.scratch()) + r.rows * (r.columns + 1);
        run_losses<C>(c, r, [&](const C* x, C* y, C* loss, int64_t i) {
          const int64_t at = i * r.columns;
          const C* labels = read_rows<C>(c.input(1), wide_labels, at, at + r.columns);
          cross_entropy_row(x, labels + at, loss, y, r.columns);
        });
      },
      r.cost, scratch_for(c.input_type(0), r, 2));
}

// Labels of either dtype. Each is checked whenever it is read: its memory may be the user's.
struct Labels {
  const void* raw;
  bool wide;
  int64_t classes;

  Labels(const Tensor& t, int64_t classes)
      : raw(t.raw()), wide(t.dtype() == DType::kInt64), classes(classes) {}
  int64_t at(int64_t i) const {
    const int64_t label = wide ? static_cast<const volatile int64_t*>(raw)[i]
                               : static_cast<const volatile int32_t*>(raw)[i];
    if (label < 0 || label >= classes) {
      throw invalid_argument("Received a label value of ", label,
                             " which is outside the valid range of [0, ", classes,
                             ").  It is labels[", i, "].");
    }
    return label;
  }
};

template <class C>
std::unique_ptr<Kernel> prepare_sparse(const PrepareContext& c) {
  const Rows r(c.input_shape(0));
  const int64_t count = c.input_shape(1).num_elements();
  return make_kernel(
      [r, count](RunContext& c) {
        const Labels labels(c.input(1), r.columns);
        for (int64_t i = 0; i < count; ++i) labels.at(i);  // the lowest bad one is reported
        run_losses<C>(c, r, [&](const C* x, C* y, C* loss, int64_t i) {
          sparse_cross_entropy_row(x, labels.at(i), loss, y, r.columns);
        });
      },
      r.cost, scratch_for(c.input_type(0), r, 1));
}

template <class C>
void register_types(KernelRegistry& r) {
  const TypeConstraint type = {"T", stored_types<C>()};
  r.add("Softmax", {type}, prepare_rows<C, softmax_row<C>>);
  r.add("LogSoftmax", {type}, prepare_rows<C, log_softmax_row<C>>);
  r.add("SoftmaxCrossEntropyWithLogits", {type}, prepare_cross_entropy<C>);
  r.add("SparseSoftmaxCrossEntropyWithLogits", {type, {"Tlabels", {DType::kInt32, DType::kInt64}}},
        prepare_sparse<C>);
}

}  // namespace

void register_softmax_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
}

}  // namespace treenail::cpu
