// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors: text and intersection.
#include "framework/tensor/tensor_slice.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"

namespace treenail {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw invalid_argument(
      "shape_and_slice is \"", text, "\": ", why,
      "; needed is like \"10 20 0,5:-\": extents, then per axis \"start,length\" or \"-\"");
}

int64_t number(std::string_view text, std::string_view whole) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || value < 0) {
    refuse(whole, concat("\"", text, "\" is no number"));
  }
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace

TensorSlice TensorSlice::whole(const Shape& shape) {
  TensorSlice slice;
  slice.full = shape;
  slice.start.resize(shape.dims().size());
  slice.extent = shape;
  return slice;
}

TensorSlice TensorSlice::parse(std::string_view text) {
  std::vector<std::string_view> words = split(text, ' ');
  const std::vector<std::string_view> axes = split(words.back(), ':');
  words.pop_back();
  if (words.empty()) refuse(text, "there are no extents");
  if (words.size() != axes.size()) {
    refuse(text, concat(words.size(), " extents and ", axes.size(), " axes"));
  }
  if (words.size() > static_cast<size_t>(kMaxRank)) refuse(text, concat("rank ", words.size()));
  int64_t full[kMaxRank], extent[kMaxRank];
  TensorSlice slice;
  slice.start.resize(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    full[i] = extent[i] = number(words[i], text);
    if (axes[i] == "-") continue;
    const size_t comma = axes[i].find(',');
    if (comma == std::string_view::npos)
      refuse(text, concat("\"", axes[i], "\" is no part of an axis"));
    slice.start[i] = number(axes[i].substr(0, comma), text);
    extent[i] = number(axes[i].substr(comma + 1), text);
    if (slice.start[i] > full[i] || extent[i] > full[i] - slice.start[i]) {
      refuse(text, concat("\"", axes[i], "\" does not lie in an axis of ", full[i]));
    }
  }
  slice.full = Shape({full, axes.size()});
  slice.extent = Shape({extent, axes.size()});
  return slice;
}

std::string TensorSlice::text() const {
  std::string text;
  for (const int64_t dim : full.dims()) text += concat(dim, " ");
  for (int i = 0; i < full.rank(); ++i) {
    if (i > 0) text += ":";
    text += extent[i] == full[i] ? std::string("-") : concat(start[i], ",", extent[i]);
  }
  return text;
}

bool TensorSlice::intersection(const TensorSlice& a, const TensorSlice& b, TensorSlice* common) {
  int64_t extent[kMaxRank];
  common->full = a.full;
  common->start.resize(a.start.size());
  for (int i = 0; i < a.full.rank(); ++i) {
    const int64_t begin = std::max(a.start[i], b.start[i]);
    const int64_t end = std::min(a.start[i] + a.extent[i], b.start[i] + b.extent[i]);
    if (end <= begin) return false;
    common->start[i] = begin;
    extent[i] = end - begin;
  }
  common->extent = Shape({extent, static_cast<size_t>(a.full.rank())});
  return true;
}

}  // namespace treenail
