// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/elementwise/arithmetic.h"

#include "framework/base/error.h"

namespace treenail::host {

void throw_division_by_zero() { throw invalid_argument("Integer division by zero"); }
void throw_negative_power() {
  throw invalid_argument("Integers to negative integer powers are not allowed");
}

}  // namespace treenail::host
