// SPDX-License-Identifier: Apache-2.0
// The geometry of ExtractImagePatches, as its launches pass it.
#pragma once

#include <cstdint>

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

struct PatchAxis {
  Divisor input, output, taps, stride;
  int64_t dilation = 1, pad_before = 0;
};

struct PatchSpace {
  int64_t images = 0;
  Divisor channels;
  PatchAxis rows, columns;
};

}  // namespace treenail::gpu
