// SPDX-License-Identifier: Apache-2.0
// The sum of up to kMostTerms tensors, and of what came before them. Half types are added in float
// and rounded once: of a longer sum what is carried from launch to launch stays float.
#include "kernels/cuda/elementwise/add_n_terms.h"
#include "kernels/cuda/elementwise/kernels.h"

namespace treenail::gpu {

// Integers wrap, as unsigned ones of any size do.
template <class S>
using Added = std::conditional_t<std::is_integral_v<S>, S, Computed<S>>;
template <class S>
TN_DEVICE Added<S> added_of(S x) {
  if constexpr (std::is_integral_v<S>) {
    return x;
  } else {
    return Stored<S>::widen(x);
  }
}

template <class S>
struct Terms {
  const Added<S>* before;  // or null
  const S* term[kMostTerms];
  int count;
};

// Of the elements i, i + 1, ... of all terms.
template <int kN, class S>
TN_DEVICE Group<Added<S>, kN> sum_at(const Terms<S>& terms, int64_t i) {
  using C = Added<S>;
  Group<C, kN> sum = {};
  if (terms.before != nullptr) sum = load_group<kN>(terms.before + i, 1);
  for (int t = 0; t < kMostTerms; ++t) {
    if (t >= terms.count) continue;
    const Group<S, kN> x = load_group<kN>(terms.term[t] + i, 1);
    const bool copies = t == 0 && terms.before == nullptr;
    for (int k = 0; k < kN; ++k) {
      const C one = added_of(x.element[k]);
      sum.element[k] = copies ? one : static_cast<C>(sum.element[k] + one);
    }
  }
  return sum;
}

template <int kN, class S>
TN_DEVICE void put_sum(const Group<Added<S>, kN>& sum, S* to) {
  Group<S, kN> result;
  for (int k = 0; k < kN; ++k) {
    if constexpr (std::is_integral_v<S>) {
      result.element[k] = sum.element[k];
    } else {
      result.element[k] = Stored<S>::narrow(sum.element[k]);
    }
  }
  store_group(to, result);
}

template <int kN, class S>
TN_DEVICE void add_groups(int64_t begin, int64_t end, const Terms<S>& terms, Added<S>* carried,
                          S* y) {
  TN_NO_UNROLL
  for (int64_t g = begin / kN + first(); g < end / kN; g += stride()) {
    const Group<Added<S>, kN> sum = sum_at<kN>(terms, g * kN);
    if (carried != nullptr) {
      store_group(carried + g * kN, sum);
    } else {
      put_sum<kN, S>(sum, y + g * kN);
    }
  }
}

template <class S>
TN_DEVICE void add_n(int64_t n, const Terms<S>& terms, Added<S>* carried, S* y) {
  constexpr int kN = kGroupSize<Added<S>>;
  bool together = is_aligned(terms.before, sizeof(Added<S>) * kN) &&
                  is_aligned(carried, sizeof(Added<S>) * kN) && is_aligned(y, sizeof(S) * kN);
  for (int t = 0; t < kMostTerms; ++t)
    together = together && (t >= terms.count || is_aligned(terms.term[t], sizeof(S) * kN));
  const int64_t whole = together ? n / kN * kN : 0;
  add_groups<kN>(0, whole, terms, carried, y);
  add_groups<1>(whole, n, terms, carried, y);
}

// y, or what is carried where that is not null, = before + x0 + x1 + ..., in this order.
#define TN_ADD_N(S, type)                                                                         \
  TN_KERNEL(add_n_##type, int64_t n, int count, const Added<S>* before, const S* x0, const S* x1, \
            const S* x2, const S* x3, const S* x4, const S* x5, const S* x6, const S* x7,         \
            Added<S>* carried, S* y) {                                                            \
    add_n(n, Terms<S>{before, {x0, x1, x2, x3, x4, x5, x6, x7}, count}, carried, y);              \
  }
TN_ADD_N(float, float32)
TN_ADD_N(double, float64)
TN_ADD_N(Float16, float16)
TN_ADD_N(BFloat16, bfloat16)
TN_ADD_N(uint8_t, uint8)
TN_ADD_N(uint16_t, uint16)
TN_ADD_N(uint32_t, uint32)
TN_ADD_N(uint64_t, uint64)

}  // namespace treenail::gpu
