// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and the cross entropies: a group of lanes for each row of n elements. NaN in
// a row, or +inf, makes the sum NaN and with it every result.
#include "kernels/cuda/language/fault.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/language/numbers.h"

namespace treenail::gpu {

template <class T>
struct RowSum {
  T largest, sum;  // of exp(x - largest)
};

// Of the group's row; `x` null where the group has none, whose lanes take part all the same.
template <class T>
TN_DEVICE RowSum<T> sum_exponentials(const T* x, int64_t n, int lanes, T* part) {
  T largest = kLowest<T>;
  for (int64_t i = lane_of(lanes); x != nullptr && i < n; i += lanes)
    largest = x[i] > largest ? x[i] : largest;
  largest = over_group(part, largest, lanes, [](T a, T b) { return a > b ? a : b; });
  T sum = 0;
  for (int64_t i = lane_of(lanes); x != nullptr && i < n; i += lanes)
    sum += exp_of_negative(x[i] - largest);
  return {largest, over_group(part, sum, lanes, [](T a, T b) { return a + b; })};
}

// Calls body(row) for each row of this thread's group; for rows beyond the last one with `rows`.
template <class F>
TN_DEVICE void for_rows(int64_t rows, int lanes, F body) {
  const int64_t groups = threads() / lanes;
  for (int64_t base = block() * groups; base < rows; base += blocks() * groups) {
    const int64_t row = base + group_of(lanes);
    body(row < rows ? row : rows);
  }
}

template <bool kLog, class T>
TN_DEVICE void softmax(int64_t rows, int64_t n, int lanes, const T* x, T* y) {
  TN_SHARED(T, part, kMostThreads);
  for_rows(rows, lanes, [&](int64_t row) {
    const T* const from = row < rows ? x + row * n : nullptr;
    const RowSum<T> all = sum_exponentials(from, n, lanes, part);
    const T log_sum = log(all.sum), inverse = T(1) / all.sum;
    for (int64_t i = lane_of(lanes); from != nullptr && i < n; i += lanes) {
      const T d = from[i] - all.largest;
      y[row * n + i] = kLog ? d - log_sum : exp_of_negative(d) * inverse;
    }
  });
}

template <class T>
TN_DEVICE void cross_entropy(int64_t rows, int64_t n, int lanes, const T* x, const T* labels,
                             T* loss, T* y) {
  TN_SHARED(T, part, kMostThreads);
  for_rows(rows, lanes, [&](int64_t row) {
    const T* const from = row < rows ? x + row * n : nullptr;
    const RowSum<T> all = sum_exponentials(from, n, lanes, part);
    const T inverse = T(1) / all.sum;
    T weight = 0, weighted = 0;
    for (int64_t i = lane_of(lanes); from != nullptr && i < n; i += lanes) {
      const T d = from[i] - all.largest, label = labels[row * n + i];
      weight += label;
      weighted += label == T(0) ? T(0) : label * d;
      y[row * n + i] = exp_of_negative(d) * inverse - label;
    }
    const auto add = [](T a, T b) { return a + b; };
    weight = over_group(part, weight, lanes, add);
    weighted = over_group(part, weighted, lanes, add);
    if (from != nullptr && lane_of(lanes) == 0)
      loss[row] = n == 0 ? T(0) : log(all.sum) * weight - weighted;
  });
}

template <class T, class Label>
TN_DEVICE void sparse_cross_entropy(int64_t rows, int64_t n, int lanes, const T* x,
                                    const Label* labels, T* loss, T* y, unsigned long long* fault) {
  TN_SHARED(T, part, kMostThreads);
  for_rows(rows, lanes, [&](int64_t row) {
    const T* const from = row < rows ? x + row * n : nullptr;
    const RowSum<T> all = sum_exponentials(from, n, lanes, part);
    if (from == nullptr) return;
    const auto label = static_cast<int64_t>(labels[row]);
    const bool good = checked(label, n, row, fault);
    const T inverse = T(1) / all.sum;
    for (int64_t i = lane_of(lanes); i < n; i += lanes)
      y[row * n + i] = exp_of_negative(from[i] - all.largest) * inverse - T(i == label ? 1 : 0);
    if (lane_of(lanes) == 0) loss[row] = good ? log(all.sum) - (from[label] - all.largest) : T(0);
  });
}

#define TN_SOFTMAX(T)                                                                           \
  TN_KERNEL(softmax_##T, int64_t rows, int64_t n, int lanes, const T* x, T* y) {                \
    softmax<false>(rows, n, lanes, x, y);                                                       \
  }                                                                                             \
  TN_KERNEL(log_softmax_##T, int64_t rows, int64_t n, int lanes, const T* x, T* y) {            \
    softmax<true>(rows, n, lanes, x, y);                                                        \
  }                                                                                             \
  TN_KERNEL(cross_entropy_##T, int64_t rows, int64_t n, int lanes, const T* x, const T* labels, \
            T* loss, T* y) {                                                                    \
    cross_entropy(rows, n, lanes, x, labels, loss, y);                                          \
  }                                                                                             \
  TN_KERNEL(sparse_cross_entropy_##T##_int32, int64_t rows, int64_t n, int lanes, const T* x,   \
            const int32_t* labels, T* loss, T* y, unsigned long long* fault) {                  \
    sparse_cross_entropy(rows, n, lanes, x, labels, loss, y, fault);                            \
  }                                                                                             \
  TN_KERNEL(sparse_cross_entropy_##T##_int64, int64_t rows, int64_t n, int lanes, const T* x,   \
            const int64_t* labels, T* loss, T* y, unsigned long long* fault) {                  \
    sparse_cross_entropy(rows, n, lanes, x, labels, loss, y, fault);                            \
  }
TN_SOFTMAX(float)
TN_SOFTMAX(double)

}  // namespace treenail::gpu
