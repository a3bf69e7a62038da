// SPDX-License-Identifier: Apache-2.0
// The attributes of LRN and LRNGrad, for every device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/op_def.h"

namespace treenail::host {

struct LrnAttributes {
  int64_t radius;
  double bias, alpha, beta;

  LrnAttributes(const OpInstance& op, int64_t channels)
      // A wider window than the channels sees all of them.
      : radius(std::min<int64_t>(op.get_int("depth_radius"), channels)),
        bias(op.get_float("bias")),
        alpha(op.get_float("alpha")),
        beta(op.get_float("beta")) {
    if (radius < 0) {
      throw invalid_argument("depth_radius must not be negative, got ", op.get_int("depth_radius"));
    }
  }
};

}  // namespace treenail::host
