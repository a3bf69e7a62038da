// SPDX-License-Identifier: Apache-2.0
// Shapes, whole and partial: what they compute, and what absurd extents get.
#include "framework/tensor/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

template <class F>
std::string invalid(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.message();
  }
  return "no Error";
}

TEST(Shape, Basics) {
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().num_elements(), 1);
  const Shape shape({2, 3, 4});
  EXPECT_EQ(shape.num_elements(), 24);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(to_text(shape), "[2,3,4]");
  EXPECT_EQ(to_text(Shape()), "[]");
  EXPECT_EQ(Shape({5, 0, 7}).num_elements(), 0);
  EXPECT_EQ(shape, Shape({2, 3, 4}));
  EXPECT_FALSE(shape == Shape({2, 3}));
  EXPECT_FALSE(Shape({0, 2}) == Shape({0, 3}));
}

TEST(Shape, Derived) {
  const Shape shape({2, 3, 4});
  EXPECT_EQ(shape.with_dim(1, 9), Shape({2, 9, 4}));
  EXPECT_EQ(shape.inserted(0, 1), Shape({1, 2, 3, 4}));
  EXPECT_EQ(shape.inserted(3, 1), Shape({2, 3, 4, 1}));
  EXPECT_EQ(shape.removed(1), Shape({2, 4}));
  EXPECT_EQ(shape.sub(1, 3), Shape({3, 4}));
  EXPECT_EQ(shape.sub(1, 1), Shape());
  EXPECT_EQ(shape.concatenated(Shape({7})), Shape({2, 3, 4, 7}));
}

TEST(Shape, AbsurdExtentsAreRefused) {
  EXPECT_EQ(invalid([] { Shape({3, -1}); }), "shape [3,?] has a negative extent, -1");
  EXPECT_EQ(invalid([] { Shape({-7}); }), "shape [-7] has a negative extent, -7");
  EXPECT_EQ(invalid([] {
              Shape({kHuge, 2});
            }),
            "shape [4611686018427387904,2] has more than 2^63 - 1 elements");
  // An empty shape whose parts cannot be multiplied is refused too: kernels multiply parts.
  EXPECT_EQ(invalid([] {
              Shape({kHuge, kHuge, 0});
            }),
            "shape [4611686018427387904,4611686018427387904,0] has more than 2^63 - 1 elements");
  EXPECT_EQ(Shape({kHuge, 1}).num_elements(), kHuge);
  EXPECT_EQ(Shape({kHuge, 0}).num_elements(), 0);
  EXPECT_EQ(
      invalid([] { Shape(std::vector<int64_t>(33, 1)); }),
      "shape [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]... has rank 33; "
      "at most 32 is supported");
  EXPECT_NE(invalid([] {
              const Shape half(std::vector<int64_t>(20, 1));
              half.concatenated(half);
            }).find("has rank 40"),
            std::string::npos);
  EXPECT_NE(invalid([] { Shape({2}).with_dim(0, -5); }).find("negative extent, -5"),
            std::string::npos);
}

// A caller's mistake is an error in every build, not memory beyond the extents.
TEST(Shape, AxesThatItLacksAreRefused) {
  const Shape shape({2, 3});
  EXPECT_THROW(shape.with_dim(2, 1), Error);
  EXPECT_THROW(shape.with_dim(-1, 1), Error);
  EXPECT_THROW(shape.inserted(3, 1), Error);
  EXPECT_THROW(shape.removed(2), Error);
  EXPECT_THROW(shape.sub(1, 3), Error);
  EXPECT_THROW(shape.sub(2, 1), Error);
  EXPECT_THROW(PartialShape().with_dim(0, 1), Error);
  EXPECT_THROW(PartialShape().shape(), Error);
  EXPECT_THROW(PartialShape({2, kUnknown}).shape(), Error);
}

TEST(CheckedProduct, NamesBothFactors) {
  EXPECT_EQ(checked_product(kHuge, 1), kHuge);
  EXPECT_EQ(checked_product(0, std::numeric_limits<int64_t>::max()), 0);
  EXPECT_EQ(invalid([] { checked_product(kHuge, 3); }),
            "the product of 4611686018427387904 and 3 exceeds 2^63 - 1");
}

TEST(PartialShape, UnknownRank) {
  const PartialShape unknown;
  EXPECT_FALSE(unknown.rank_known());
  EXPECT_FALSE(unknown.fully_known());
  EXPECT_EQ(unknown.dim(3), kUnknown);
  EXPECT_EQ(unknown.num_elements(), kUnknown);
  EXPECT_EQ(to_text(unknown), "?");
  EXPECT_EQ(unknown, PartialShape());
  EXPECT_FALSE(unknown == PartialShape(Shape()));
  EXPECT_EQ(unknown.inserted(0, 3), PartialShape());
  EXPECT_EQ(unknown.removed(0), PartialShape());
  EXPECT_EQ(unknown.concatenated(Shape({1})), PartialShape());
  EXPECT_EQ(unknown.sub(1, 3), PartialShape::unknown_with_rank(2));
}

TEST(PartialShape, PartlyKnown) {
  const PartialShape shape({2, kUnknown, 4});
  EXPECT_EQ(to_text(shape), "[2,?,4]");
  EXPECT_EQ(shape.num_elements(), kUnknown);
  EXPECT_EQ(shape.with_dim(1, 3).num_elements(), 24);
  EXPECT_EQ(shape.with_dim(1, 3).shape(), Shape({2, 3, 4}));
  EXPECT_EQ(shape.with_dim(0, 0).num_elements(), 0);
  EXPECT_EQ(shape.removed(1), PartialShape(Shape({2, 4})));
  EXPECT_TRUE(PartialShape(Shape({2, 4})).fully_known());
  EXPECT_EQ(shape.sub(1, 3), PartialShape({kUnknown, 4}));
  EXPECT_EQ(shape.concatenated(Shape({5})), PartialShape({2, kUnknown, 4, 5}));
}

TEST(PartialShape, Compatibility) {
  const PartialShape shape({2, kUnknown});
  EXPECT_TRUE(shape.compatible(PartialShape()));
  EXPECT_TRUE(PartialShape().compatible(shape));
  EXPECT_TRUE(shape.compatible(PartialShape({kUnknown, 7})));
  EXPECT_TRUE(shape.compatible(Shape({2, 7})));
  EXPECT_FALSE(shape.compatible(Shape({3, 7})));
  EXPECT_FALSE(shape.compatible(Shape({2})));
}

TEST(PartialShape, AbsurdExtentsAreRefused) {
  EXPECT_NE(invalid([] { PartialShape({3, -2}); }).find("negative extent, -2"), std::string::npos);
  EXPECT_NE(invalid([] {
              PartialShape({kHuge, kUnknown, 4});
            }).find("more than 2^63 - 1"),
            std::string::npos);
  EXPECT_NE(invalid([] { PartialShape::unknown_with_rank(33); }).find("needed is 0 to 32"),
            std::string::npos);
  EXPECT_NE(invalid([] { PartialShape::unknown_with_rank(-1); }).find("needed is 0 to 32"),
            std::string::npos);
}

}  // namespace
}  // namespace treenail
