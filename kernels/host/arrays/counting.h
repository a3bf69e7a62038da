// SPDX-License-Identifier: Apache-2.0
// What Bincount says on every device.
#pragma once

#include <cstdint>

#include "framework/base/error.h"

namespace treenail::host {

[[noreturn]] inline void throw_negative_number(int64_t place, int64_t number) {
  throw invalid_argument("Input arr must be non-negative, but arr[", place, "] is ", number);
}

}  // namespace treenail::host
