// SPDX-License-Identifier: Apache-2.0
// Shapes: every way of making one goes through the same checks.
#include "framework/tensor/shape.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "framework/base/error.h"

namespace treenail {
namespace {

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ",";
    text += dims[i] == kUnknown ? std::string("?") : std::to_string(dims[i]);
  }
  return text + "]";
}

void check_rank(std::span<const int64_t> dims) {
  if (dims.size() <= static_cast<size_t>(kMaxRank)) return;
  throw invalid_argument("shape ", dims_text(dims.first(kMaxRank)), "... has rank ", dims.size(),
                         "; at most ", kMaxRank, " is supported");
}

// The product of the extents, which must not overflow even without the zeros among them: kernels
// multiply parts of a shape. Extents below zero must be `allowed_negative`; they count as one.
int64_t checked_elements(std::span<const int64_t> dims, int64_t allowed_negative) {
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0 && dim != allowed_negative) {
      throw invalid_argument("shape ", dims_text(dims), " has a negative extent, ", dim);
    }
    if (dim == 0) empty = true;
    if (dim > 0 && __builtin_mul_overflow(product, dim, &product)) {
      throw invalid_argument("shape ", dims_text(dims), " has more than 2^63 - 1 elements");
    }
  }
  return empty ? 0 : product;
}

constexpr int64_t kNoneNegative = 0;

// A short list of extents under construction. Joined shapes may be too long for a Shape, whose
// constructor says so.
struct Dims {
  int64_t values[2 * kMaxRank];
  size_t count = 0;
  void add(std::span<const int64_t> more) {
    std::copy(more.begin(), more.end(), values + count);
    count += more.size();
  }
  void add(int64_t dim) { values[count++] = dim; }
  std::span<const int64_t> span() const { return {values, count}; }
};

// Axes [begin, end) must be axes of `dims`: callers have checked what a user gave.
void check_axes(std::span<const int64_t> dims, int begin, int end) {
  if (0 <= begin && begin <= end && static_cast<size_t>(end) <= dims.size()) return;
  throw internal_error("axes [", begin, ", ", end, ") of shape ", dims_text(dims),
                       " are asked for");
}

Dims with_dim_of(std::span<const int64_t> dims, int axis, int64_t extent) {
  check_axes(dims, axis, axis + 1);
  Dims result;
  result.add(dims);
  result.values[axis] = extent;
  return result;
}

Dims inserted_in(std::span<const int64_t> dims, int axis, int64_t extent) {
  check_axes(dims, axis, axis);
  Dims result;
  result.add(dims.first(static_cast<size_t>(axis)));
  result.add(extent);
  result.add(dims.subspan(static_cast<size_t>(axis)));
  return result;
}

Dims removed_from(std::span<const int64_t> dims, int axis) {
  check_axes(dims, axis, axis + 1);
  Dims result;
  result.add(dims.first(static_cast<size_t>(axis)));
  result.add(dims.subspan(static_cast<size_t>(axis) + 1));
  return result;
}

std::span<const int64_t> part_of(std::span<const int64_t> dims, int begin, int end) {
  check_axes(dims, begin, end);
  return dims.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

Dims joined(std::span<const int64_t> head, std::span<const int64_t> tail) {
  Dims result;
  result.add(head);
  result.add(tail);
  return result;
}

}  // namespace

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw invalid_argument("the product of ", a, " and ", b, " exceeds 2^63 - 1");
  }
  return product;
}

Shape::Shape(std::span<const int64_t> dims) {
  check_rank(dims);
  num_elements_ = checked_elements(dims, kNoneNegative);
  dims_.assign(dims);
}

Shape Shape::with_dim(int axis, int64_t extent) const {
  return Shape(with_dim_of(dims(), axis, extent).span());
}
Shape Shape::inserted(int axis, int64_t extent) const {
  return Shape(inserted_in(dims(), axis, extent).span());
}
Shape Shape::removed(int axis) const { return Shape(removed_from(dims(), axis).span()); }
Shape Shape::sub(int begin, int end) const { return Shape(part_of(dims(), begin, end)); }
Shape Shape::concatenated(const Shape& tail) const {
  return Shape(joined(dims(), tail.dims()).span());
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

std::string to_text(const Shape& shape) { return dims_text(shape.dims()); }

PartialShape::PartialShape(const Shape& shape) : dims_(shape.dims()), rank_known_(true) {}

PartialShape::PartialShape(std::span<const int64_t> dims) : rank_known_(true) {
  check_rank(dims);
  checked_elements(dims, kUnknown);
  dims_.assign(dims);
}

PartialShape PartialShape::unknown_with_rank(int rank) {
  if (rank < 0 || rank > kMaxRank) {
    throw invalid_argument("rank is ", rank, "; needed is 0 to ", kMaxRank);
  }
  PartialShape shape;
  shape.rank_known_ = true;
  shape.dims_.resize(static_cast<size_t>(rank));
  std::ranges::fill(shape.dims_, kUnknown);
  return shape;
}

bool PartialShape::fully_known() const {
  return rank_known() && std::ranges::find(dims(), kUnknown) == dims().end();
}

int64_t PartialShape::num_elements() const {
  if (!rank_known()) return kUnknown;
  int64_t product = 1;
  bool known = true;
  for (const int64_t dim : dims()) {
    if (dim == 0) return 0;
    if (dim == kUnknown) {
      known = false;
    } else {
      product *= dim;  // checked when the shape was made
    }
  }
  return known ? product : kUnknown;
}

Shape PartialShape::shape() const {
  if (!fully_known()) throw internal_error("shape ", to_text(*this), " is asked for as known");
  return Shape(dims());
}

bool PartialShape::compatible(const PartialShape& other) const {
  if (!rank_known() || !other.rank_known()) return true;
  return std::ranges::equal(dims(), other.dims(), [](int64_t a, int64_t b) {
    return a == b || a == kUnknown || b == kUnknown;
  });
}

PartialShape PartialShape::with_dim(int axis, int64_t extent) const {
  return PartialShape(with_dim_of(dims(), axis, extent).span());
}
PartialShape PartialShape::inserted(int axis, int64_t extent) const {
  if (!rank_known()) return *this;
  return PartialShape(inserted_in(dims(), axis, extent).span());
}
PartialShape PartialShape::removed(int axis) const {
  if (!rank_known()) return *this;
  return PartialShape(removed_from(dims(), axis).span());
}
PartialShape PartialShape::sub(int begin, int end) const {
  if (!rank_known()) return unknown_with_rank(end - begin);
  return PartialShape(part_of(dims(), begin, end));
}
PartialShape PartialShape::concatenated(const PartialShape& tail) const {
  if (!rank_known() || !tail.rank_known()) return PartialShape();
  return PartialShape(joined(dims(), tail.dims()).span());
}

bool operator==(const PartialShape& a, const PartialShape& b) {
  return a.rank_known_ == b.rank_known_ && std::ranges::equal(a.dims(), b.dims());
}

std::string to_text(const PartialShape& shape) {
  return shape.rank_known() ? dims_text(shape.dims()) : "?";
}

}  // namespace treenail
