// SPDX-License-Identifier: Apache-2.0
// Numbers of the rows that indices choose, as keys for sorting.
#include "kernels/cuda/indexing/row_of.h"

namespace treenail::gpu {

template <class Index, class Key>
TN_DEVICE void row_numbers(const Places& p, const Index* indices, Key* numbers,
                           unsigned long long* fault) {
  for (int64_t i = first(); i < p.n; i += stride())
    numbers[i] = static_cast<Key>(row_of(p, indices, i, fault));
}

#define TN_ROW_NUMBERS(Index, index, Key, key)                                         \
  TN_KERNEL(row_numbers_##index##_##key, Places p, const Index* indices, Key* numbers, \
            unsigned long long* fault) {                                               \
    row_numbers(p, indices, numbers, fault);                                           \
  }
TN_ROW_NUMBERS(int32_t, int32, uint32_t, uint32)
TN_ROW_NUMBERS(int32_t, int32, uint64_t, uint64)
TN_ROW_NUMBERS(int64_t, int64, uint32_t, uint32)
TN_ROW_NUMBERS(int64_t, int64, uint64_t, uint64)

}  // namespace treenail::gpu
