// SPDX-License-Identifier: Apache-2.0
// Where the extrema along an axis of [outer, extent, inner] are: the first of equals, or the first
// NaN.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/reductions/arg_types.h"

namespace treenail::gpu {

template <class C>
struct Found {
  C value;
  int64_t at;  // -1: nothing was looked at
};

template <bool kMax, class C>
TN_DEVICE bool better(const Found<C>& a, const Found<C>& b) {
  if (a.at < 0 || b.at < 0) return b.at < 0;
  const bool nan = a.value != a.value, other_nan = b.value != b.value;
  if (nan != other_nan) return nan;
  const bool equal = nan || a.value == b.value;
  if (equal) return a.at < b.at;
  return kMax ? a.value > b.value : a.value < b.value;
}

template <bool kMax, class S, class Index>
TN_DEVICE void search(int64_t outer, int64_t extent, int64_t inner, int lanes, const S* x,
                      Index* y) {
  using C = Computed<S>;
  TN_SHARED(Found<C>, part, kMostThreads);
  const auto choose = [](const Found<C>& a, const Found<C>& b) {
    return better<kMax>(a, b) ? a : b;
  };
  const int64_t groups = threads() / lanes, results = outer * inner;
  for (int64_t base = block() * groups; base < results; base += blocks() * groups) {
    const int64_t result = base + group_of(lanes);
    Found<C> best = {C(), -1};
    if (result < results) {
      const S* const from = x + result / inner * extent * inner + result % inner;
      for (int64_t i = lane_of(lanes); i < extent; i += lanes)
        best = choose(best, Found<C>{Stored<S>::widen(from[i * inner]), i});
    }
    best = over_group(part, best, lanes, choose);
    if (result < results && lane_of(lanes) == 0) y[result] = static_cast<Index>(best.at);
  }
}

#define TN_SEARCH(name, kMax, S, type, Index, index)                                          \
  TN_KERNEL(name##_##type##_##index, int64_t outer, int64_t extent, int64_t inner, int lanes, \
            const S* x, Index* y) {                                                           \
    search<kMax>(outer, extent, inner, lanes, x, y);                                          \
  }
#define TN_SEARCHES(S, type)                        \
  TN_SEARCH(ArgMax, true, S, type, int32_t, int32)  \
  TN_SEARCH(ArgMax, true, S, type, int64_t, int64)  \
  TN_SEARCH(ArgMin, false, S, type, int32_t, int32) \
  TN_SEARCH(ArgMin, false, S, type, int64_t, int64)
TN_ARG_TYPES(TN_SEARCHES)

}  // namespace treenail::gpu
