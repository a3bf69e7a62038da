// SPDX-License-Identifier: Apache-2.0
// What a launch of lrn.cu is about.
#pragma once

#include <cstdint>

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

struct LrnSpace {
  int64_t elements = 0, radius = 0;
  Divisor channels;
  double bias = 0, alpha = 0, beta = 0;
};

}  // namespace treenail::gpu
