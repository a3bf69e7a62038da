// SPDX-License-Identifier: Apache-2.0
// Partly known slices: what a shape rule may conclude, and what it may not. Fully known ones are
// tested by tests/cases/slicing.py.
#include "framework/op/slice_spec.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

PartialValue vector(std::initializer_list<std::optional<int64_t>> elements) {
  return PartialValue{elements, false};
}

PartialShape slice(const PartialShape& input, const PartialValue& begin, const PartialValue& end,
                   const PartialValue& strides, const SliceMasks& masks = {}) {
  return resolve_slice(input, &begin, &end, &strides, static_cast<int64_t>(begin.elements.size()),
                       masks)
      .output;
}

TEST(SliceSpec, UnknownExtentsStayUnknown) {
  EXPECT_EQ(slice({kUnknown, 5}, vector({0, 1}), vector({2, 4}), vector({1, 1})),
            (PartialShape{kUnknown, 3}));
}

TEST(SliceSpec, WholeAxesOfUnknownExtentKeepIt) {
  SliceMasks open;
  open.begin = open.end = 1;
  EXPECT_EQ(slice({4}, vector({0}), vector({0}), vector({-1}), open), (PartialShape{4}));
  EXPECT_EQ(slice({kUnknown}, vector({0}), vector({0}), vector({1}), open),
            (PartialShape{kUnknown}));
}

TEST(SliceSpec, UnknownEndsGiveUnknownExtents) {
  EXPECT_EQ(slice({6}, vector({std::nullopt}), vector({4}), vector({1})), (PartialShape{kUnknown}));
  EXPECT_EQ(slice({6}, vector({1}), vector({4}), vector({std::nullopt})), (PartialShape{kUnknown}));
}

TEST(SliceSpec, AnIndexDropsItsAxisEvenWhenUnknown) {
  SliceMasks shrink;
  shrink.shrink_axis = 1;
  EXPECT_EQ(
      slice({kUnknown, 3}, vector({std::nullopt}), vector({std::nullopt}), vector({1}), shrink),
      (PartialShape{3}));
}

TEST(SliceSpec, NothingIsKnownWithoutRankOrLength) {
  const PartialValue one = vector({0});
  EXPECT_FALSE(resolve_slice(PartialShape(), &one, &one, &one, 1, {}).rank_known);
  EXPECT_FALSE(resolve_slice({2}, nullptr, nullptr, nullptr, kUnknown, {}).rank_known);
}

TEST(SliceSpec, EndsBeyondTheAxisAreCut) {
  const PartialValue begin = vector({-100}), end = vector({INT64_MAX}),
                     strides = vector({INT64_MAX});
  EXPECT_EQ(slice({6}, begin, end, strides), (PartialShape{1}));
  EXPECT_EQ(slice({6}, vector({INT64_MAX}), vector({INT64_MIN}), vector({INT64_MIN})),
            (PartialShape{1}));
}

TEST(SliceSpec, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of([] { slice({6}, vector({0}), vector({1}), vector({0})); }),
            "InvalidArgument: strides[0] must be non-zero");
  EXPECT_EQ(error_of([] {
              slice({6}, vector({0, 0}), vector({1}), vector({1, 1}));
            }).substr(0, 16),
            "InvalidArgument:");
  SliceMasks axes;
  axes.new_axis = 7;  // three of the specification's, behind the 30 that there are
  const PartialValue three = vector({0, 0, 0});
  EXPECT_EQ(
      error_of([&] { slice(PartialShape::unknown_with_rank(30), three, three, three, axes); }),
      "InvalidArgument: the slice has rank 33, at most 32 is supported");
}

}  // namespace
}  // namespace treenail
