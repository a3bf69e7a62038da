// SPDX-License-Identifier: Apache-2.0
// Numbers of slots or of plan nodes, kept by each node of a plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "framework/base/small_vector.h"

namespace treenail {

// Few as a rule, and then they lie where their node does: in a graph beyond the caches each block
// of their own would be another miss.
using Numbers = SmallVector<int32_t, 4>;

// Sorts them, each once.
inline void sort_once(Numbers& numbers) {
  std::sort(numbers.begin(), numbers.end());
  const int32_t* const end = std::unique(numbers.begin(), numbers.end());
  numbers.resize(static_cast<size_t>(end - numbers.begin()));
}

template <class Which>
void erase_if(Numbers& numbers, const Which& which) {
  const int32_t* const end = std::remove_if(numbers.begin(), numbers.end(), which);
  numbers.resize(static_cast<size_t>(end - numbers.begin()));
}

}  // namespace treenail
