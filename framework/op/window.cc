// SPDX-License-Identifier: Apache-2.0
#include "framework/op/window.h"

#include <string>

#include "framework/base/error.h"
#include "framework/op/attribute.h"

namespace treenail {
namespace {

// Of any one attribute: sums of sizes, paddings and strides cannot overflow.
constexpr int64_t kLargest = int64_t{1} << 31;

// A list over the four axes that may differ from 1 in the spatial ones only.
void read_spatial(const OpInstance& op, const char* name, const WindowAttrs& w, int64_t (&to)[2]) {
  const std::vector<int64_t>& list = op.get_ints(name);
  const std::string text = to_text(op.attr(name));
  if (list.size() != 4) throw invalid_argument(name, " needs 4 elements, one per axis, got ", text);
  for (const int64_t x : list) {
    if (x <= 0 || x > kLargest)
      throw invalid_argument(name, " must be between 1 and ", kLargest, ", got ", text);
  }
  if (list[0] != 1 || list[static_cast<size_t>(w.channel_axis())] != 1) {
    throw invalid_argument(name, " must be 1 for batch and channels, got ", text);
  }
  for (int i = 0; i < 2; ++i) to[i] = list[static_cast<size_t>(w.spatial_axis(i))];
}

void read_explicit(const OpInstance& op, WindowAttrs& w) {
  const std::vector<int64_t>& list = op.get_ints("explicit_paddings");
  const std::string text = to_text(op.attr("explicit_paddings"));
  if (w.padding != Padding::kExplicit) {
    if (!list.empty()) {
      throw invalid_argument("explicit_paddings must be empty unless padding is \"EXPLICIT\", got ",
                             text);
    }
    return;
  }
  if (list.size() != 8) {
    throw invalid_argument("explicit_paddings needs 8 elements, two per axis, got ", text);
  }
  for (const int64_t x : list) {
    if (x < 0 || x > kLargest) {
      throw invalid_argument("explicit_paddings must be between 0 and ", kLargest, ", got ", text);
    }
  }
  const auto channel = size_t{2} * static_cast<size_t>(w.channel_axis());
  if (list[0] != 0 || list[1] != 0 || list[channel] != 0 || list[channel + 1] != 0) {
    throw invalid_argument("explicit_paddings must be 0 for batch and channels, got ", text);
  }
  for (int i = 0; i < 2; ++i) {
    const auto at = size_t{2} * static_cast<size_t>(w.spatial_axis(i));
    w.pad[i][0] = list[at];
    w.pad[i][1] = list[at + 1];
  }
}

}  // namespace

WindowAttrs WindowAttrs::of(const OpInstance& op) {
  WindowAttrs w;
  const OpDef& def = op.def();
  w.channels_second = def.attr_index("data_format") >= 0 && op.get_string("data_format") == "NCHW";
  const std::string& padding = op.get_string("padding");
  w.padding = padding == "SAME"    ? Padding::kSame
              : padding == "VALID" ? Padding::kValid
                                   : Padding::kExplicit;
  read_spatial(op, "strides", w, w.stride);
  if (def.attr_index("dilations") >= 0) read_spatial(op, "dilations", w, w.dilation);
  if (def.attr_index("ksize") >= 0) read_spatial(op, "ksize", w, w.size);
  if (def.attr_index("explicit_paddings") >= 0) read_explicit(op, w);
  return w;
}

WindowAxis WindowAttrs::axis(int i, int64_t input, int64_t taps) const {
  WindowAxis a;
  a.input = input;
  a.taps = taps;
  a.stride = stride[i];
  a.dilation = dilation[i];
  a.output = kUnknown;
  if (padding == Padding::kSame && input != kUnknown)
    a.output = input / a.stride + (input % a.stride != 0 ? 1 : 0);
  if (input == kUnknown || taps == kUnknown) return a;
  if (taps < 1) throw invalid_argument("the window has extent ", taps, ", needed is at least 1");
  const int64_t extent = checked_product(taps - 1, a.dilation) + 1;
  if (padding == Padding::kSame) {
    const int64_t covered = a.output == 0 ? 0 : checked_product(a.output - 1, a.stride) + extent;
    const int64_t missing = covered > input ? covered - input : 0;
    a.pad_before = missing / 2;
    a.pad_after = missing - missing / 2;
    return a;
  }
  a.pad_before = pad[i][0];
  a.pad_after = pad[i][1];
  if (input > (int64_t{1} << 61))
    throw invalid_argument("an image side of ", input, " is too large");
  const int64_t padded = input + a.pad_before + a.pad_after;
  if (padded < extent) {
    throw invalid_argument("Negative dimension size caused by subtracting ", extent, " from ",
                           padded, ": the window spans ", extent, " elements of an axis of ", input,
                           " with padding (", a.pad_before, ", ", a.pad_after, ")");
  }
  a.output = (padded - extent) / a.stride + 1;
  return a;
}

PartialShape WindowAttrs::shape(int64_t batch, int64_t height, int64_t width,
                                int64_t channels) const {
  return channels_second ? PartialShape({batch, channels, height, width})
                         : PartialShape({batch, height, width, channels});
}

}  // namespace treenail
