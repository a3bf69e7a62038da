// SPDX-License-Identifier: Apache-2.0
// What CheckNumerics looks for, and says, on every device.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "framework/tensor/dtype.h"

namespace treenail::host {

// The bits of an infinity: numbers whose magnitude has greater ones are NaN.
constexpr uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x7c00;
    case DType::kBFloat16:
      return 0x7f80;
    case DType::kFloat32:
      return 0x7f800000;
    default:
      return 0x7ff0000000000000;
  }
}

// Errors: InvalidArgument, if either was found.
inline void check_finite(const std::string& message, bool nan, bool infinity) {
  if (!nan && !infinity) return;
  const char* what = nan && infinity ? "Inf and NaN" : nan ? "NaN" : "Inf";
  throw invalid_argument(message, " : Tensor had ", what, " values");
}

}  // namespace treenail::host
