// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and the cross entropies: a group of lanes for each row of n elements. NaN in
// a row, or +inf, makes the sum NaN and with it every result.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/fault.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/language/numbers.h"
#include "kernels/cuda/normalization/rows.h"

namespace treenail::gpu {

template <class T>
struct RowSum {
  T largest, sum;  // of exp(x - largest)
};

// Of the group's row; `x` null where the group has none, whose lanes take part all the same.
template <class S, class C = Computed<S>>
TN_DEVICE RowSum<C> sum_exponentials(const S* x, int64_t n, int lanes, C* part) {
  C largest = kLowest<C>;
  for (int64_t i = lane_of(lanes); x != nullptr && i < n; i += lanes) {
    const C value = Stored<S>::widen(x[i]);
    largest = value > largest ? value : largest;
  }
  largest = over_group(part, largest, lanes, [](C a, C b) { return a > b ? a : b; });
  C sum = 0;
  for (int64_t i = lane_of(lanes); x != nullptr && i < n; i += lanes)
    sum += exp_of_negative(Stored<S>::widen(x[i]) - largest);
  return {largest, over_group(part, sum, lanes, [](C a, C b) { return a + b; })};
}

template <bool kLog, class S>
TN_DEVICE void softmax(int64_t rows, int64_t n, int lanes, const S* x, S* y) {
  using C = Computed<S>;
  TN_SHARED(C, part, kMostThreads);
  for_rows(rows, lanes, [&](int64_t row) {
    const S* const from = row < rows ? x + row * n : nullptr;
    const RowSum<C> all = sum_exponentials(from, n, lanes, part);
    const C log_sum = log(all.sum), inverse = C(1) / all.sum;
    for (int64_t i = lane_of(lanes); from != nullptr && i < n; i += lanes) {
      const C d = Stored<S>::widen(from[i]) - all.largest;
      y[row * n + i] = Stored<S>::narrow(kLog ? d - log_sum : exp_of_negative(d) * inverse);
    }
  });
}

template <class S>
TN_DEVICE void cross_entropy(int64_t rows, int64_t n, int lanes, const S* x, const S* labels,
                             S* loss, S* y) {
  using C = Computed<S>;
  TN_SHARED(C, part, kMostThreads);
  for_rows(rows, lanes, [&](int64_t row) {
    const S* const from = row < rows ? x + row * n : nullptr;
    const RowSum<C> all = sum_exponentials(from, n, lanes, part);
    const C inverse = C(1) / all.sum;
    C weight = 0, weighted = 0;
    for (int64_t i = lane_of(lanes); from != nullptr && i < n; i += lanes) {
      const C d = Stored<S>::widen(from[i]) - all.largest;
      const C label = Stored<S>::widen(labels[row * n + i]);
      weight += label;
      weighted += label == C(0) ? C(0) : label * d;
      y[row * n + i] = Stored<S>::narrow(exp_of_negative(d) * inverse - label);
    }
    const auto add = [](C a, C b) { return a + b; };
    weight = over_group(part, weight, lanes, add);
    weighted = over_group(part, weighted, lanes, add);
    if (from != nullptr && lane_of(lanes) == 0)
      loss[row] = Stored<S>::narrow(n == 0 ? C(0) : log(all.sum) * weight - weighted);
  });
}

template <class S, class Label>
TN_DEVICE void sparse_cross_entropy(int64_t rows, int64_t n, int lanes, const S* x,
                                    const Label* labels, S* loss, S* y, unsigned long long* fault) {
  using C = Computed<S>;
  TN_SHARED(C, part, kMostThreads);
  for_rows(rows, lanes, [&](int64_t row) {
    const S* const from = row < rows ? x + row * n : nullptr;
    const auto label = from != nullptr ? static_cast<int64_t>(labels[row]) : 0;
    const bool good = from != nullptr && checked(label, n, row, fault);
    // Before the barriers of the sums: y may be x, of which other lanes write this element.
    const C logit = good ? Stored<S>::widen(from[label]) : C(0);
    const RowSum<C> all = sum_exponentials(from, n, lanes, part);
    if (from == nullptr) return;
    const C inverse = C(1) / all.sum;
    for (int64_t i = lane_of(lanes); i < n; i += lanes) {
      const C d = Stored<S>::widen(from[i]) - all.largest;
      y[row * n + i] = Stored<S>::narrow(exp_of_negative(d) * inverse - C(i == label ? 1 : 0));
    }
    if (lane_of(lanes) != 0) return;
    loss[row] = Stored<S>::narrow(good ? log(all.sum) - (logit - all.largest) : C(0));
  });
}

#define TN_SPARSE(S, type, Label, label)                                                           \
  TN_KERNEL(sparse_cross_entropy_##type##_##label, int64_t rows, int64_t n, int lanes, const S* x, \
            const Label* labels, S* loss, S* y, unsigned long long* fault) {                       \
    sparse_cross_entropy(rows, n, lanes, x, labels, loss, y, fault);                               \
  }
#define TN_SOFTMAX(S, type)                                                                        \
  TN_KERNEL(softmax_##type, int64_t rows, int64_t n, int lanes, const S* x, S* y) {                \
    softmax<false>(rows, n, lanes, x, y);                                                          \
  }                                                                                                \
  TN_KERNEL(log_softmax_##type, int64_t rows, int64_t n, int lanes, const S* x, S* y) {            \
    softmax<true>(rows, n, lanes, x, y);                                                           \
  }                                                                                                \
  TN_KERNEL(cross_entropy_##type, int64_t rows, int64_t n, int lanes, const S* x, const S* labels, \
            S* loss, S* y) {                                                                       \
    cross_entropy(rows, n, lanes, x, labels, loss, y);                                             \
  }                                                                                                \
  TN_SPARSE(S, type, int32_t, int32)                                                               \
  TN_SPARSE(S, type, int64_t, int64)
TN_SOFTMAX(float, float32)
TN_SOFTMAX(double, float64)
TN_SOFTMAX(Float16, float16)
TN_SOFTMAX(BFloat16, bfloat16)

}  // namespace treenail::gpu
