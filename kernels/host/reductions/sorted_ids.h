// SPDX-License-Identifier: Apache-2.0
// What is said of segment ids that are not sorted, on every device.
#pragma once

#include <cstdint>

#include "framework/base/error.h"

namespace treenail::host {

// ids[place] = id is negative, or less than `before`, which is ids[place - 1].
[[noreturn]] inline void throw_unsorted(int64_t place, int64_t before, int64_t id) {
  if (id < 0) throw invalid_argument("segment ids must be >= 0: segment_ids[", place, "] = ", id);
  throw invalid_argument("segment ids are not increasing: segment_ids[", place - 1, "] = ", before,
                         ", segment_ids[", place, "] = ", id);
}

}  // namespace treenail::host
