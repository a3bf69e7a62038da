// SPDX-License-Identifier: Apache-2.0
// Are ids sorted, and which is the last one? Are indices in range?
#include "kernels/cuda/indexing/sorted_ids.h"
#include "kernels/cuda/language/fault.h"

namespace treenail::gpu {

template <class Index>
TN_DEVICE void check_sorted(int64_t n, const Index* ids, unsigned long long* fault) {
  for (int64_t i = first(); i < n; i += stride()) {
    if (ids[i] < 0 || (i > 0 && ids[i] < ids[i - 1]))
      atomic_min(fault, static_cast<unsigned long long>(i));
  }
}

// By one thread, with the word as check_sorted() has left it.
template <class Index>
TN_DEVICE void sorted_ids(int64_t n, const Index* ids, const unsigned long long* fault,
                          SortedIds* found) {
  const auto place = static_cast<int64_t>(*fault);
  found->fault = place;
  found->before = place > 0 ? static_cast<int64_t>(ids[place - 1]) : 0;
  found->id = place >= 0 ? static_cast<int64_t>(ids[place]) : 0;
  found->last = static_cast<int64_t>(ids[n - 1]);
}

template <class Index>
TN_DEVICE void check_rows(int64_t n, int64_t rows, const Index* indices,
                          unsigned long long* fault) {
  for (int64_t i = first(); i < n; i += stride())
    checked(static_cast<int64_t>(indices[i]), rows, i, fault);
}

#define TN_SORTED_IDS(Index, type)                                                           \
  TN_KERNEL(check_sorted_##type, int64_t n, const Index* ids, unsigned long long* fault) {   \
    check_sorted(n, ids, fault);                                                             \
  }                                                                                          \
  TN_KERNEL(sorted_ids_##type, int64_t n, const Index* ids, const unsigned long long* fault, \
            SortedIds* found) {                                                              \
    sorted_ids(n, ids, fault, found);                                                        \
  }                                                                                          \
  TN_KERNEL(check_rows_##type, int64_t n, int64_t rows, const Index* indices,                \
            unsigned long long* fault) {                                                     \
    check_rows(n, rows, indices, fault);                                                     \
  }
TN_SORTED_IDS(int32_t, int32)
TN_SORTED_IDS(int64_t, int64)

}  // namespace treenail::gpu
