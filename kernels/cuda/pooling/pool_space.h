// SPDX-License-Identifier: Apache-2.0
// The geometry of a pooling, as its launches pass it: images of channels last, planes and rows
// first. Where channels are second each channel is an image of one channel.
#pragma once

#include <cstdint>

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

inline constexpr int kPoolAxes = 3;

struct PoolAxis {
  Divisor input, output, stride;
  int64_t taps = 1, pad_before = 0;
};

struct PoolSpace {
  int64_t images = 0;
  Divisor channels, groups;  // groups: of kGroupSize channels, where they are whole
  PoolAxis axis[kPoolAxes];
};

}  // namespace treenail::gpu
