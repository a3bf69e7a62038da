// SPDX-License-Identifier: Apache-2.0
// Operations that combine rows, and rows that take the place of others.
#include "kernels/cuda/indexing/merger.h"
#include "kernels/cuda/language/bits.h"

namespace treenail::gpu {

struct MergeSubtract {
  template <class T>
  TN_DEVICE static T apply(T a, T b) {
    return static_cast<T>(a - b);
  }
};
struct MergeMultiply {
  template <class T>
  TN_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
      return static_cast<T>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
    } else {
      return a * b;
    }
  }
};
// A NaN on either side stays.
struct MergeMinimum {
  template <class T>
  TN_DEVICE static T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct MergeMaximum {
  template <class T>
  TN_DEVICE static T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

TN_MERGES(TN_MERGE)

// The last row of updates of each run takes the place of the target's.
template <class T>
TN_DEVICE void put_rows(const RowRuns& r, const RowMerge& m, const void* keys,
                        const uint32_t* positions, const T* updates, T* target,
                        const unsigned long long* fault) {
  if (faulty(fault)) return;
  const int64_t groups = threads() / r.lanes;
  for (int64_t slot = block() * groups + group_of(r.lanes); slot < r.n; slot += blocks() * groups) {
    const int64_t row = row_at(r, keys, slot);
    if (row >= r.rows || (slot + 1 < r.n && row_at(r, keys, slot + 1) == row)) continue;
    const T* const from = m.single != 0 ? updates : updates + positions[slot] * m.width;
    const int64_t step = static_cast<int64_t>(blocks_y()) * r.lanes;
    for (int64_t c = static_cast<int64_t>(block_y()) * r.lanes + lane_of(r.lanes); c < m.width;
         c += step)
      target[row * m.width + c] = from[m.single != 0 ? 0 : c];
  }
}

#define TN_PUT(bytes, T)                                                                          \
  TN_KERNEL(put_rows_##bytes, RowRuns r, RowMerge m, const void* keys, const uint32_t* positions, \
            const T* updates, T* target, const unsigned long long* fault) {                       \
    put_rows(r, m, keys, positions, updates, target, fault);                                      \
  }
TN_PUT(1, uint8_t)
TN_PUT(2, uint16_t)
TN_PUT(4, uint32_t)
TN_PUT(8, uint64_t)
TN_PUT(16, Bits128)

}  // namespace treenail::gpu
