// SPDX-License-Identifier: Apache-2.0
// What the attributes of FusedBatchNorm say.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct BatchNormOptions {
  double epsilon = 0, average_factor = 1;
  int32_t training = 1;
};

}  // namespace treenail::gpu
