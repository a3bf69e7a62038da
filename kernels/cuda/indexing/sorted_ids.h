// SPDX-License-Identifier: Apache-2.0
// What indexing/sorted_ids.cu finds out about ids that should be sorted.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct SortedIds {
  int64_t
      fault;  // the place of the first that is negative or less than the one before it; -1: none
  int64_t before, id;  // what lies before that place, and there
  int64_t last;
};

}  // namespace treenail::gpu
