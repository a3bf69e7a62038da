// SPDX-License-Identifier: Apache-2.0
// Shape: the concrete extents of a tensor. PartialShape: what shape rules know: unknown rank, or
// extents that are a number or unknown. Both hold a few extents inline and up to kMaxRank on the
// heap. Products are checked for overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "framework/base/small_vector.h"

namespace treenail {

// NumPy 1 and HDF5 have no arrays of more axes (docs/decisions/ranks.md).
inline constexpr int kMaxRank = 32;
inline constexpr int64_t kUnknown = -1;  // an unknown extent

using Extents = SmallVector<int64_t, 6>;

class Shape {
 public:
  Shape() = default;  // rank 0: a scalar
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  // Errors: InvalidArgument for a rank above kMaxRank, a negative extent, or a product beyond 2^63
  // - 1.
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t operator[](int axis) const { return dim(axis); }
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  int64_t num_elements() const { return num_elements_; }

  // Each returns a new shape; Errors as in the constructor.
  Shape with_dim(int axis, int64_t extent) const;
  Shape inserted(int axis, int64_t extent) const;
  Shape removed(int axis) const;
  Shape sub(int begin, int end) const;  // axes [begin, end)
  Shape concatenated(const Shape& tail) const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  Extents dims_;
  int64_t num_elements_ = 1;
};

// "[2,3]", "[]".
std::string to_text(const Shape& shape);

class PartialShape {
 public:
  PartialShape() = default;  // unknown rank
  PartialShape(
      const Shape& shape);  // NOLINT(google-explicit-constructor): every shape is a partial shape
  PartialShape(std::initializer_list<int64_t> dims)
      : PartialShape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  // Extents are numbers >= 0 or kUnknown. Errors: InvalidArgument (rank, below kUnknown,
  // overflowing known product).
  explicit PartialShape(std::span<const int64_t> dims);
  static PartialShape unknown_with_rank(int rank);

  bool rank_known() const { return rank_known_; }
  int rank() const { return rank_known_ ? static_cast<int>(dims_.size()) : -1; }  // -1: unknown
  // Unknown rank: every extent is kUnknown.
  int64_t dim(int axis) const { return rank_known_ ? dims_[static_cast<size_t>(axis)] : kUnknown; }
  int64_t operator[](int axis) const { return dim(axis); }
  std::span<const int64_t> dims() const {
    return {dims_.data(), dims_.size()};
  }  // none of an unknown rank
  bool fully_known() const;
  int64_t num_elements() const;  // kUnknown unless fully known (0 as soon as one extent is 0)
  Shape shape() const;           // requires fully_known()

  bool compatible(const PartialShape& other) const;       // some concrete shape satisfies both
  PartialShape with_dim(int axis, int64_t extent) const;  // requires known rank
  PartialShape inserted(int axis, int64_t extent) const;
  PartialShape removed(int axis) const;
  PartialShape sub(int begin, int end) const;
  PartialShape concatenated(const PartialShape& tail) const;  // unknown rank if either is unknown

  friend bool operator==(const PartialShape& a, const PartialShape& b);

 private:
  Extents dims_;
  bool rank_known_ = false;
};

// "[2,?]", "[]", "?" for unknown rank.
std::string to_text(const PartialShape& shape);

// a*b with InvalidArgument naming both factors when the product exceeds 2^63 - 1. a, b >= 0.
int64_t checked_product(int64_t a, int64_t b);

}  // namespace treenail
