// SPDX-License-Identifier: Apache-2.0
// Sliding windows of convolution and pooling: how strides, padding and dilations become sizes.
// Shape rules and kernels read them here, so that both mean the same.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"

namespace treenail {

enum class Padding : uint8_t { kValid, kSame, kExplicit };

// One spatial axis. With pad_before zeros before it, window w covers input w * stride - pad_before
// + tap * dilation.
struct WindowAxis {
  int64_t input = 0, taps = 1, stride = 1, dilation = 1;
  int64_t pad_before = 0, pad_after = 0;
  int64_t output = 0;
  int64_t extent() const { return (taps - 1) * dilation + 1; }  // from first to last tap
};

// What the attributes of a convolution or pooling op say.
struct WindowAttrs {
  bool channels_second = false;  // NCHW
  Padding padding = Padding::kValid;
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t size[2] = {1, 1};  // ksize; convolutions take theirs from the filter
  int64_t pad[2][2] = {};    // explicit: [axis][before, after]

  int channel_axis() const { return channels_second ? 1 : 3; }
  int spatial_axis(int i) const { return (channels_second ? 2 : 1) + i; }

  // Reads strides, padding, explicit_paddings, data_format, and ksize and dilations where the op
  // has them. Errors: InvalidArgument (lengths, non-positive numbers, windows or strides over batch
  // or channels).
  static WindowAttrs of(const OpInstance& op);

  // Axis i (0: height, 1: width) with `taps` taps over `input` elements; unknown sizes give an
  // unknown output and no padding. Errors: InvalidArgument when the window does not fit.
  WindowAxis axis(int i, int64_t input, int64_t taps) const;

  // [batch, height, width, channels] in the op's own order.
  PartialShape shape(int64_t batch, int64_t height, int64_t width, int64_t channels) const;
};

}  // namespace treenail
