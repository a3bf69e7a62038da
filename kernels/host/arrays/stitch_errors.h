// SPDX-License-Identifier: Apache-2.0
// What DynamicStitch says on every device.
#pragma once

#include <cstdint>

#include "framework/base/error.h"

namespace treenail::host {

// Of list number `list`.
[[noreturn]] inline void throw_negative_index(int list, int64_t place, int64_t index) {
  throw invalid_argument("indices[", list, "] holds ", index, " at place ", place,
                         "; indices must not be negative");
}

}  // namespace treenail::host
