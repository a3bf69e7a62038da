// SPDX-License-Identifier: Apache-2.0
// What the convolution algorithms share: the interface of one pass over float or double images or
// volumes with channels last. Layout and 16-bit dtypes are converted around a
// pass, in convolution.cc, which also chooses it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/host/convolution/conv_geometry.h"

namespace treenail::cpu {

using host::ConvGeometry;
using host::ConvPass;

// One pass, prepared. Operands a and b: input and filter (forward), filter and output gradient
// (input), input and output gradient (filter). Scratch is aligned to 64 bytes.
template <class T>
class ConvAlgorithm {
 public:
  virtual ~ConvAlgorithm() = default;
  virtual void run(const RunContext& c, const T* a, const T* b, T* out,
                   std::byte* scratch) const = 0;
  size_t scratch_bytes = 0;
  double cost_ns = 0;
};
template <class T>
using ConvPtr = std::unique_ptr<ConvAlgorithm<T>>;

// Direct convolution on register tiles (conv_direct.cc): any stride and dilation, volumes too.
// Winograd's takes volumes for two passes, all others take flat geometries only.
template <class T>
ConvPtr<T> direct_forward(const ConvGeometry& g);
template <class T>
ConvPtr<T> direct_input(const ConvGeometry& g);
template <class T>
ConvPtr<T> direct_filter(const ConvGeometry& g);  // conv_direct_filter.cc

// oneDNN (conv_onednn.cc): null where it is absent, has no such convolution, or would be slower.
ConvPtr<float> onednn_pass(ConvPass pass, const ConvGeometry& g);

// The gradient of an input of few channels (conv_fold.cc).
template <class T>
bool prefer_fold(const ConvGeometry& g);
template <class T>
ConvPtr<T> fold_input(const ConvGeometry& g);

// Winograd's algorithm (winograd_forward.cc, winograd_filter.cc), and whether it is the fastest for
// a shape (winograd.cc).
bool prefer_winograd(const ConvGeometry& g, ConvPass pass);
ConvPtr<float> winograd_forward(const ConvGeometry& g, bool backward);
ConvPtr<float> winograd_filter(const ConvGeometry& g);

// Depthwise convolution (depthwise.cc).
template <class T>
ConvPtr<T> depthwise_pass(ConvPass pass, const ConvGeometry& g);

// Whether the windows cover so much more padding than input that no padded copy is to be made
// (large dilations, large explicit padding), and the passes that make none (conv_taps.cc).
bool padding_dominates(const ConvGeometry& g);
template <class T>
ConvPtr<T> taps_pass(ConvPass pass, const ConvGeometry& g);

// Where a padded copy of some rows of an image lies; the copy is left out where nothing is padded.
template <class T>
struct Band {
  const T* first;      // the first tap of the first window
  int64_t row_stride;  // elements
};

// Rows of a plane `image` ([rows.input, columns.input, channels]) that output rows [begin, end)
// cover, with zeros around them where the padding asks for it, in `copy` (band_elements).
template <class T>
Band<T> padded_band(const ConvGeometry& g, const T* image, int64_t begin, int64_t end, T* copy);
int64_t band_elements(const ConvGeometry& g, int64_t output_rows);
bool is_padded(const ConvGeometry& g);

// The windows [first, end) of an axis whose tap lies inside the input.
inline void windows_inside(const WindowAxis& a, int64_t tap, int64_t& first, int64_t& end) {
  const int64_t offset = tap * a.dilation - a.pad_before;  // input = window * stride + offset
  first = offset >= 0 ? 0 : (-offset + a.stride - 1) / a.stride;
  end = a.input <= offset ? 0 : std::min(a.output, (a.input - offset - 1) / a.stride + 1);
  first = std::min(first, end);
}

// The plane of the input that tap `tap` of output plane `plane` meets; -1 where that is padding.
inline int64_t plane_of_tap(const ConvGeometry& g, int64_t plane, int64_t tap) {
  const int64_t at = plane * g.planes.stride + tap * g.planes.dilation - g.planes.pad_before;
  return at >= 0 && at < g.planes.input ? at : -1;
}

}  // namespace treenail::cpu
