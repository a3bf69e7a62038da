// SPDX-License-Identifier: Apache-2.0
// What was found at the place of a fault: words[1] = values[words[0]].
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

template <class T>
TN_DEVICE void value_at_fault(const T* values, unsigned long long* words) {
  if (first() == 0 && words[0] != ~0ull)
    words[1] = static_cast<unsigned long long>(static_cast<int64_t>(values[words[0]]));
}

TN_KERNEL(value_at_fault_int32, const int32_t* values, unsigned long long* words) {
  value_at_fault(values, words);
}
TN_KERNEL(value_at_fault_int64, const int64_t* values, unsigned long long* words) {
  value_at_fault(values, words);
}

}  // namespace treenail::gpu
