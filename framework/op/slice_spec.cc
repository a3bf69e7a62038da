// SPDX-License-Identifier: Apache-2.0
// First the entries are laid out over the input's axes (an ellipsis takes what the others leave),
// then each axis is resolved.
#include "framework/op/slice_spec.h"

#include <algorithm>

#include "framework/base/error.h"

namespace treenail {
namespace {

using Known = std::optional<int64_t>;

bool bit(int64_t mask, int64_t i) { return i < 64 && ((mask >> i) & 1) != 0; }

// One input axis with the entry that speaks of it, or a place in the output without an input axis.
struct Place {
  enum class Kind { kSlice, kShrink, kNewAxis, kWhole } kind = Kind::kWhole;
  int64_t entry = -1;
};

void check_entries(int64_t entries, const PartialValue* value, const char* name) {
  if (value == nullptr) return;
  if (static_cast<int64_t>(value->elements.size()) != entries) {
    throw invalid_argument("Expected begin, end, and strides to be 1D equal size tensors, but ",
                           name, " has ", value->elements.size(), " elements instead of ", entries);
  }
}

std::vector<Place> lay_out(int rank, int64_t entries, const SliceMasks& masks) {
  int64_t ellipsis = -1;
  int64_t input_axes = 0;  // that entries speak of
  for (int64_t i = 0; i < entries; ++i) {
    if (bit(masks.ellipsis, i)) {
      if (ellipsis >= 0) throw invalid_argument("Multiple ellipses in slice spec not allowed");
      ellipsis = i;
    } else if (!bit(masks.new_axis, i)) {
      ++input_axes;
    }
  }
  if (input_axes > rank) {
    throw invalid_argument("Index out of range using input dim ", rank, "; input has only ", rank,
                           " dims, the slice has ", input_axes);
  }
  std::vector<Place> places;
  const auto whole = [&] {
    places.insert(places.end(), static_cast<size_t>(rank - input_axes), Place());
  };
  for (int64_t i = 0; i < entries; ++i) {
    if (i == ellipsis) {
      whole();
    } else if (bit(masks.new_axis, i)) {
      places.push_back({Place::Kind::kNewAxis, i});
    } else {
      places.push_back({bit(masks.shrink_axis, i) ? Place::Kind::kShrink : Place::Kind::kSlice, i});
    }
  }
  if (ellipsis < 0) whole();
  return places;
}

Known element(const PartialValue* value, int64_t i) {
  return value == nullptr ? Known() : value->elements[static_cast<size_t>(i)];
}

// x[i]: one element, the axis goes.
SliceAxis shrink(const Known& begin, const Known& stride, int64_t extent, int64_t axis) {
  if (stride && *stride <= 0)
    throw invalid_argument("only stride 1 allowed on non-range indexing.");
  SliceAxis result{std::nullopt, 1, 1};
  if (!begin || (extent == kUnknown && *begin < 0)) return result;
  const int64_t at = *begin < 0 ? *begin + extent : *begin;
  if (extent != kUnknown && (at < 0 || at >= extent)) {
    throw invalid_argument("slice index ", *begin, " of dimension ", axis, " out of bounds.");
  }
  result.begin = at;
  return result;
}

// x[begin:end:stride], either end open when its mask bit is set.
SliceAxis range(const Known& begin, const Known& end, const Known& stride, bool open_begin,
                bool open_end, int64_t extent, int64_t entry) {
  SliceAxis result;
  result.stride = stride;
  if (!stride) return result;
  if (*stride == 0) throw invalid_argument("strides[", entry, "] must be non-zero");
  if (extent == kUnknown) return result;
  const int64_t low = *stride > 0 ? 0 : -1;
  const int64_t high = *stride > 0 ? extent : extent - 1;
  const auto place = [&](int64_t given) {
    return std::clamp(given < 0 ? given + extent : given, low, high);
  };
  if (open_begin) {
    result.begin = *stride > 0 ? low : high;
  } else if (begin) {
    result.begin = place(*begin);
  }
  Known last;
  if (open_end) {
    last = *stride > 0 ? high : low;
  } else if (end) {
    last = place(*end);
  }
  if (!result.begin || !last) return result;
  const int64_t distance = *last - *result.begin;
  const bool empty = distance == 0 || (distance < 0) != (*stride < 0);
  result.count = empty ? 0 : distance / *stride + (distance % *stride != 0 ? 1 : 0);
  return result;
}

}  // namespace

SliceMasks SliceMasks::of(const OpInstance& op) {
  return {op.get_int("begin_mask"), op.get_int("end_mask"), op.get_int("ellipsis_mask"),
          op.get_int("new_axis_mask"), op.get_int("shrink_axis_mask")};
}

SliceSpec resolve_slice(const PartialShape& input, const PartialValue* begin,
                        const PartialValue* end, const PartialValue* strides, int64_t entries,
                        const SliceMasks& masks) {
  SliceSpec spec;
  if (entries == kUnknown || !input.rank_known()) return spec;
  check_entries(entries, begin, "begin");
  check_entries(entries, end, "end");
  check_entries(entries, strides, "strides");
  spec.rank_known = true;
  const std::vector<Place> places = lay_out(input.rank(), entries, masks);
  std::vector<int64_t> dims;
  for (const Place& place : places) {
    if (place.kind == Place::Kind::kNewAxis) {
      dims.push_back(1);
      continue;
    }
    const int64_t axis = static_cast<int64_t>(spec.axes.size());
    const int64_t extent = input[static_cast<int>(axis)];
    const int64_t i = place.entry;
    if (place.kind == Place::Kind::kWhole) {
      spec.axes.push_back({0, 1, extent});
      dims.push_back(extent);
    } else if (place.kind == Place::Kind::kShrink) {
      spec.axes.push_back(shrink(element(begin, i), element(strides, i), extent, axis));
    } else {
      spec.axes.push_back(range(element(begin, i), element(end, i), element(strides, i),
                                bit(masks.begin, i), bit(masks.end, i), extent, i));
      const SliceAxis& last = spec.axes.back();
      const bool all =
          bit(masks.begin, i) && bit(masks.end, i) && last.stride && std::abs(*last.stride) == 1;
      dims.push_back(all ? extent : last.count);
    }
  }
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    throw invalid_argument("the slice has rank ", dims.size(), ", at most ", kMaxRank,
                           " is supported");
  }
  spec.output = PartialShape(std::span<const int64_t>(dims));
  return spec;
}

}  // namespace treenail
