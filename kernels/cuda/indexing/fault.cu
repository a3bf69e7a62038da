// SPDX-License-Identifier: Apache-2.0
// What was found at the place of a fault, which is of rows of `width` values: words[1 + k] =
// values[words[0], k].
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class T>
TN_DEVICE void value_at_fault(const T* values, int width, unsigned long long* words) {
  if (words[0] == ~0ull) return;
  const T* const row = values + words[0] * static_cast<unsigned long long>(width);
  for (int64_t k = first(); k < width; k += stride())
    words[1 + k] = static_cast<unsigned long long>(static_cast<int64_t>(row[k]));
}

TN_KERNEL(value_at_fault_int32, const int32_t* values, int width, unsigned long long* words) {
  value_at_fault(values, width, words);
}
TN_KERNEL(value_at_fault_int64, const int64_t* values, int width, unsigned long long* words) {
  value_at_fault(values, width, words);
}

}  // namespace treenail::gpu
