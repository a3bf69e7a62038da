// SPDX-License-Identifier: Apache-2.0
// The device's side of driver/fault_word.h.
#pragma once

#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

// Whether index `value`, which lies at `place`, is in [0, limit); where not, the word says so.
TN_DEVICE bool checked(int64_t value, int64_t limit, int64_t place, unsigned long long* word) {
  if (value >= 0 && value < limit) return true;
  atomic_min(word, static_cast<unsigned long long>(place));
  return false;
}

// Whether a kernel before this one has found a fault; null: there was nothing to find.
TN_DEVICE bool faulty(const unsigned long long* word) { return word != nullptr && *word != ~0ull; }

}  // namespace treenail::gpu
