// SPDX-License-Identifier: Apache-2.0
// Slices of tensors as text, and what two of them share.
#include "framework/tensor/tensor_slice.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace treenail {
namespace {

TEST(TensorSlice, ParsesTensorFlowsText) {
  const TensorSlice slice = TensorSlice::parse("10 20 30 0,5:-:7,1");
  EXPECT_EQ(slice.full, Shape({10, 20, 30}));
  EXPECT_EQ(slice.extent, Shape({5, 20, 1}));
  EXPECT_EQ(slice.start[0], 0);
  EXPECT_EQ(slice.start[1], 0);
  EXPECT_EQ(slice.start[2], 7);
  EXPECT_FALSE(slice.is_whole());
  EXPECT_EQ(slice.text(), "10 20 30 0,5:-:7,1");
  EXPECT_TRUE(TensorSlice::parse("4 -").is_whole());
  EXPECT_EQ(TensorSlice::parse("4 0,4").text(), "4 -");
}

TEST(TensorSlice, NonsenseIsRefusedWithTheGrammar) {
  std::string many_axes = "-";
  for (int i = 0; i < 32; ++i) many_axes = "1 " + many_axes + ":-";
  many_axes = "1 " + many_axes;
  for (const char* text :
       {"", "5", "5 ", "-", "5 5", "5 0,6", "5 6,0", "5 -1,2", "5 1", "5 1,2,3", "x -", "5 4 -",
        "5 -:-", " 5 -", "5  -", "5 0,99999999999999999999", many_axes.c_str()}) {
    try {
      TensorSlice::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(error.message().find(std::string("\"") + text + "\""), std::string::npos)
          << error.message();
    }
  }
}

TEST(TensorSlice, Intersections) {
  TensorSlice common;
  const TensorSlice a = TensorSlice::parse("10 10 0,6:2,4");
  ASSERT_TRUE(TensorSlice::intersection(a, TensorSlice::parse("10 10 4,6:-"), &common));
  EXPECT_EQ(common.text(), "10 10 4,2:2,4");
  EXPECT_FALSE(TensorSlice::intersection(a, TensorSlice::parse("10 10 6,4:-"), &common));
  EXPECT_FALSE(TensorSlice::intersection(a, TensorSlice::parse("10 10 -:6,1"), &common));
  EXPECT_FALSE(TensorSlice::intersection(a, TensorSlice::parse("10 10 3,0:-"), &common));
  ASSERT_TRUE(
      TensorSlice::intersection(TensorSlice::whole(Shape()), TensorSlice::whole(Shape()), &common));
  EXPECT_EQ(common.extent, Shape());
}

}  // namespace
}  // namespace treenail
