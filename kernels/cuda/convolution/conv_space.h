// SPDX-License-Identifier: Apache-2.0
// A convolution as host and device code see it: images [batch, extent..., channels], or channels
// before the extents, and filters [taps..., channels, filters].
#pragma once

#include <cstdint>

namespace treenail::gpu {

inline constexpr int kConvAxes = 3;  // planes, rows, columns

// Window w covers the input's elements w * stride - pad + tap * dilation.
struct ConvAxis {
  int64_t taps = 1, stride = 1, dilation = 1, pad = 0;
};

struct ConvImages {
  int64_t batch = 0, channels = 0;
  int64_t extent[kConvAxes] = {1, 1, 1};
};

struct ConvSpace {
  ConvImages input, output;
  ConvAxis axis[kConvAxes];
  int32_t channels_second = 0;
  int32_t depthwise = 0;   // filter f sees the channel f / multiplier alone
  int64_t multiplier = 1;  // filters of a channel, where depthwise
  int32_t lanes = 1;       // threads for an element of the filter
};

}  // namespace treenail::gpu
