// SPDX-License-Identifier: Apache-2.0
// Rows dealt out by their numbers, and rows put together again.
#include "kernels/cuda/indexing/run.h"
#include "kernels/cuda/language/bits.h"

namespace treenail::gpu {

// begins[k]: the first slot whose number is k or more, for k in [0, r.rows].
TN_KERNEL(run_begins, RowRuns r, const void* keys, int64_t* begins) {
  for (int64_t k = first(); k <= r.rows; k += stride())
    begins[k] = first_of_row(r, keys, 0, r.n, k);
}

// Row i of n is row positions[i]: a group of lanes for a row.
template <class T>
TN_DEVICE void take_rows(int64_t n, int64_t width, int lanes, const uint32_t* positions,
                         const T* from, T* to) {
  const int64_t groups = threads() / lanes;
  for (int64_t i = block() * groups + thread() / lanes; i < n; i += blocks() * groups) {
    const T* const row = from + static_cast<int64_t>(positions[i]) * width;
    for (int64_t c = thread() % lanes; c < width; c += lanes) to[i * width + c] = row[c];
  }
}

#define TN_TAKE(bytes, T)                                                                      \
  TN_KERNEL(take_rows_##bytes, int64_t n, int64_t width, int lanes, const uint32_t* positions, \
            const T* from, T* to) {                                                            \
    take_rows(n, width, lanes, positions, from, to);                                           \
  }
TN_TAKE(1, uint8_t)
TN_TAKE(2, uint16_t)
TN_TAKE(4, uint32_t)
TN_TAKE(8, uint64_t)
TN_TAKE(16, Bits128)

// *most: as many rows as indices name at least; a negative one is a fault.
TN_KERNEL(named_rows, int64_t n, const int32_t* indices, unsigned long long* most,
          unsigned long long* fault) {
  for (int64_t i = first(); i < n; i += stride()) {
    if (indices[i] < 0) {
      atomic_min(fault, static_cast<unsigned long long>(i));
    } else {
      atomic_max(most, static_cast<unsigned long long>(indices[i]) + 1);
    }
  }
}

}  // namespace treenail::gpu
