// SPDX-License-Identifier: Apache-2.0
// One value for all elements, by their size.
#include "kernels/cuda/language/bits.h"
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class T>
TN_DEVICE void fill(int64_t n, const T* value, T* y) {
  const T x = *value;
  for (int64_t i = first(); i < n; i += stride()) y[i] = x;
}

TN_KERNEL(fill_1, int64_t n, const uint8_t* value, uint8_t* y) { fill(n, value, y); }
TN_KERNEL(fill_2, int64_t n, const uint16_t* value, uint16_t* y) { fill(n, value, y); }
TN_KERNEL(fill_4, int64_t n, const uint32_t* value, uint32_t* y) { fill(n, value, y); }
TN_KERNEL(fill_8, int64_t n, const uint64_t* value, uint64_t* y) { fill(n, value, y); }
TN_KERNEL(fill_16, int64_t n, const Bits128* value, Bits128* y) { fill(n, value, y); }

}  // namespace treenail::gpu
