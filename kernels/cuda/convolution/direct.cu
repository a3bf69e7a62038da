// SPDX-License-Identifier: Apache-2.0
// Convolution as the sum that defines it, and its gradients, each gathered by the element that is
// computed: any geometry, in an order that depends on shapes alone. For what no library computes;
// bound by loads, of which it makes two for each product.
#include "kernels/cuda/convolution/conv_space.h"
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/group.h"

namespace treenail::gpu {

// --- Where elements lie -------------------------------------------------------------------------

struct Pixel {
  int64_t image, channel;
  int64_t at[kConvAxes];
};

TN_DEVICE int64_t cut_off(int64_t& rest, int64_t extent) {
  const int64_t above = rest / extent, at = rest - above * extent;
  rest = above;
  return at;
}

// Of the element `rest` of images that lie densely.
TN_DEVICE Pixel pixel_of(const ConvImages& images, bool channels_second, int64_t rest) {
  Pixel p;
  if (!channels_second) p.channel = cut_off(rest, images.channels);
  for (int i = kConvAxes - 1; i >= 0; --i) p.at[i] = cut_off(rest, images.extent[i]);
  if (channels_second) p.channel = cut_off(rest, images.channels);
  p.image = rest;
  return p;
}

// Of channel 0; the next channel is channel_step() further.
TN_DEVICE int64_t offset_of(const ConvImages& images, bool channels_second, const Pixel& p) {
  int64_t at = 0;
  for (int i = 0; i < kConvAxes; ++i) at = at * images.extent[i] + p.at[i];
  const int64_t pixels = images.extent[0] * images.extent[1] * images.extent[2];
  return p.image * pixels * images.channels + (channels_second ? at : at * images.channels);
}

TN_DEVICE int64_t channel_step(const ConvImages& images, bool channels_second) {
  return channels_second ? images.extent[0] * images.extent[1] * images.extent[2] : 1;
}

TN_DEVICE int64_t taps_of(const ConvSpace& s) {
  return s.axis[0].taps * s.axis[1].taps * s.axis[2].taps;
}

TN_DEVICE void tap_of(const ConvSpace& s, int64_t rest, int64_t (&tap)[kConvAxes]) {
  for (int i = kConvAxes - 1; i >= 0; --i) tap[i] = cut_off(rest, s.axis[i].taps);
}

// Of the filter's element [tap, channel, filter].
TN_DEVICE int64_t filter_at(const ConvSpace& s, int64_t tap, int64_t channel, int64_t filter) {
  const int64_t filters = s.output.channels;
  return s.depthwise != 0 ? tap * filters + filter
                          : (tap * s.input.channels + channel) * filters + filter;
}

// What a tap of the window at `output` sees; false where that is padding.
TN_DEVICE bool seen(const ConvSpace& s, const int64_t (&output)[kConvAxes], int64_t tap_number,
                    Pixel& input) {
  int64_t tap[kConvAxes];
  tap_of(s, tap_number, tap);
  for (int i = 0; i < kConvAxes; ++i) {
    const ConvAxis& a = s.axis[i];
    input.at[i] = output[i] * a.stride - a.pad + tap[i] * a.dilation;
    if (input.at[i] < 0 || input.at[i] >= s.input.extent[i]) return false;
  }
  return true;
}

// The window that sees the input's element by that tap; false where there is none.
TN_DEVICE bool seer(const ConvSpace& s, const int64_t (&input)[kConvAxes], int64_t tap_number,
                    Pixel& output) {
  int64_t tap[kConvAxes];
  tap_of(s, tap_number, tap);
  for (int i = 0; i < kConvAxes; ++i) {
    const ConvAxis& a = s.axis[i];
    const int64_t at = input[i] + a.pad - tap[i] * a.dilation;
    if (at < 0 || at % a.stride != 0) return false;
    output.at[i] = at / a.stride;
    if (output.at[i] >= s.output.extent[i]) return false;
  }
  return true;
}

TN_DEVICE int64_t elements_of(const ConvImages& images) {
  return images.batch * images.channels * images.extent[0] * images.extent[1] * images.extent[2];
}

// --- The three sums -----------------------------------------------------------------------------

template <class S>
TN_DEVICE void conv_forward(const ConvSpace& s, const S* x, const S* w, S* y) {
  using C = Computed<S>;
  const bool second = s.channels_second != 0;
  const int64_t n = elements_of(s.output), taps = taps_of(s);
  const int64_t step = channel_step(s.input, second);
  for (int64_t i = first(); i < n; i += stride()) {
    const Pixel to = pixel_of(s.output, second, i);
    const int64_t begin = s.depthwise != 0 ? to.channel / s.multiplier : 0;
    const int64_t end = s.depthwise != 0 ? begin + 1 : s.input.channels;
    Pixel from = to;
    C sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      if (!seen(s, to.at, tap, from)) continue;
      const S* const pixel = x + offset_of(s.input, second, from);
      for (int64_t c = begin; c < end; ++c)
        sum += Stored<S>::widen(pixel[c * step]) *
               Stored<S>::widen(w[filter_at(s, tap, c, to.channel)]);
    }
    y[i] = Stored<S>::narrow(sum);
  }
}

template <class S>
TN_DEVICE void conv_input(const ConvSpace& s, const S* w, const S* gradient, S* y) {
  using C = Computed<S>;
  const bool second = s.channels_second != 0;
  const int64_t n = elements_of(s.input), taps = taps_of(s);
  const int64_t step = channel_step(s.output, second);
  for (int64_t i = first(); i < n; i += stride()) {
    const Pixel to = pixel_of(s.input, second, i);
    const int64_t begin = s.depthwise != 0 ? to.channel * s.multiplier : 0;
    const int64_t end = s.depthwise != 0 ? begin + s.multiplier : s.output.channels;
    Pixel from = to;
    C sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      if (!seer(s, to.at, tap, from)) continue;
      const S* const pixel = gradient + offset_of(s.output, second, from);
      for (int64_t f = begin; f < end; ++f)
        sum += Stored<S>::widen(pixel[f * step]) *
               Stored<S>::widen(w[filter_at(s, tap, to.channel, f)]);
    }
    y[i] = Stored<S>::narrow(sum);
  }
}

// One product of the filter's gradient, from the window number `window` of all images.
template <class S>
TN_DEVICE Computed<S> filter_product(const ConvSpace& s, const S* x, const S* gradient,
                                     int64_t window, int64_t tap, int64_t channel, int64_t filter) {
  const bool second = s.channels_second != 0;
  Pixel to, from;
  for (int i = kConvAxes - 1; i >= 0; --i) to.at[i] = cut_off(window, s.output.extent[i]);
  to.image = from.image = window;
  if (!seen(s, to.at, tap, from)) return 0;
  const int64_t a = offset_of(s.input, second, from) + channel * channel_step(s.input, second);
  const int64_t b = offset_of(s.output, second, to) + filter * channel_step(s.output, second);
  return Stored<S>::widen(x[a]) * Stored<S>::widen(gradient[b]);
}

template <class S>
TN_DEVICE void conv_filter(const ConvSpace& s, const S* x, const S* gradient, S* y) {
  using C = Computed<S>;
  TN_SHARED(C, part, kMostThreads);
  const int64_t groups = threads() / s.lanes, filters = s.output.channels;
  const int64_t results = taps_of(s) * filters * (s.depthwise != 0 ? 1 : s.input.channels);
  const int64_t windows = elements_of(s.output) / filters;
  for (int64_t base = block() * groups; base < results; base += blocks() * groups) {
    const int64_t result = base + group_of(s.lanes);
    C sum = 0;
    if (result < results) {
      int64_t rest = result;
      const int64_t filter = cut_off(rest, filters);
      const int64_t channel =
          s.depthwise != 0 ? filter / s.multiplier : cut_off(rest, s.input.channels);
      for (int64_t i = lane_of(s.lanes); i < windows; i += s.lanes)
        sum += filter_product(s, x, gradient, i, rest, channel, filter);
    }
    sum = over_group(part, sum, s.lanes, [](C a, C b) { return a + b; });
    if (result < results && lane_of(s.lanes) == 0) y[result] = Stored<S>::narrow(sum);
  }
}

#define TN_CONVOLUTIONS(S, name)                                                    \
  TN_KERNEL(conv_forward_##name, ConvSpace s, const S* x, const S* w, S* y) {       \
    conv_forward(s, x, w, y);                                                       \
  }                                                                                 \
  TN_KERNEL(conv_input_##name, ConvSpace s, const S* w, const S* gradient, S* y) {  \
    conv_input(s, w, gradient, y);                                                  \
  }                                                                                 \
  TN_KERNEL(conv_filter_##name, ConvSpace s, const S* x, const S* gradient, S* y) { \
    conv_filter(s, x, gradient, y);                                                 \
  }
TN_CONVOLUTIONS(float, float32)
TN_CONVOLUTIONS(double, float64)
TN_CONVOLUTIONS(Float16, float16)
TN_CONVOLUTIONS(BFloat16, bfloat16)

}  // namespace treenail::gpu
