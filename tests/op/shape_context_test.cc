// SPDX-License-Identifier: Apache-2.0
// The helpers of shape rules, and how infer_shapes completes and checks what a rule says.
#include "framework/op/shape_context.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_def.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

constexpr int64_t kAny = kUnknown;

// An op of `inputs` float inputs and one output of dtype `out`, with `rule`.
OpDef define(ShapeFn rule, int inputs, const char* out = "y: float") {
  OpDef def;
  def.name = "X";
  OpDeclaration d(def);
  for (int i = 0; i < inputs; ++i) d.input(concat("x", i, ": float"));
  d.output(out).shape(rule);
  return def;
}

struct Run {
  std::vector<ValueInfo> outputs;
  std::string error;
};

Run run(const OpDef& def, const std::vector<ValueInfo>& inputs) {
  const std::vector<DType> types(inputs.size(), DType::kFloat32);
  const OpInstance op = resolve_op(def, types, {});
  std::vector<const ValueInfo*> pointers;
  for (const ValueInfo& info : inputs) pointers.push_back(&info);
  Run result{std::vector<ValueInfo>(def.outputs.size()), ""};
  result.error = error_of([&] { infer_shapes(op, pointers, result.outputs); });
  return result;
}

ValueInfo shaped(const PartialShape& shape) {
  ValueInfo info;
  info.dtype = DType::kFloat32;
  info.shape = shape;
  return info;
}

ValueInfo valued(std::vector<std::optional<int64_t>> elements) {
  ValueInfo info = shaped({static_cast<int64_t>(elements.size())});
  info.value = std::make_shared<const PartialValue>(PartialValue{std::move(elements), false});
  return info;
}

std::string broadcast_text(const PartialShape& a, const PartialShape& b) {
  std::string text;
  const std::string error = error_of([&] { text = to_text(ShapeContext::broadcast(a, b)); });
  EXPECT_EQ(
      error_of([&] { EXPECT_EQ(to_text(ShapeContext::broadcast(b, a)), text); }) == "no error",
      error == "no error");
  return error == "no error" ? text : error;
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast_text({2, 3}, {3}), "[2,3]");
  EXPECT_EQ(broadcast_text({2, 1, 4}, {5, 1}), "[2,5,4]");
  EXPECT_EQ(broadcast_text(Shape(), Shape()), "[]");
  EXPECT_EQ(broadcast_text(Shape(), {0}), "[0]");
  EXPECT_EQ(broadcast_text({1}, {0}), "[0]");
  EXPECT_EQ(broadcast_text({2, 3}, {4}), "InvalidArgument: Incompatible shapes: [2,3] vs. [4]");
  EXPECT_EQ(broadcast_text({2}, {0}), "InvalidArgument: Incompatible shapes: [2] vs. [0]");
}

TEST(Broadcast, KnowsWhatUnknownExtentsAllow) {
  EXPECT_EQ(broadcast_text({kAny, 3}, {1, 3}), "[?,3]");
  EXPECT_EQ(broadcast_text({kAny, 3}, {7, 3}), "[7,3]");
  EXPECT_EQ(broadcast_text({kAny}, {kAny}), "[?]");
  EXPECT_EQ(broadcast_text({kAny}, {0}), "[0]");
  EXPECT_EQ(broadcast_text(PartialShape(), {2}), "?");
}

TEST(ShapeContext, AxesCountFromTheEnd) {
  EXPECT_EQ(ShapeContext::checked_axis(-1, 2), 1);
  EXPECT_EQ(ShapeContext::checked_axis(1, 2), 1);
  EXPECT_EQ(error_of([] { ShapeContext::checked_axis(3, 2); }),
            "InvalidArgument: axis = 3 is not in [-2, 2)");
  EXPECT_EQ(error_of([] { ShapeContext::checked_axis(0, 0, "dim"); }),
            "InvalidArgument: dim = 0 is not in [0, 0)");
}

TEST(ShapeContext, MergeKeepsWhatEitherKnows) {
  EXPECT_EQ(ShapeContext::merge({2, kAny}, {kAny, 3}, "a and b"), PartialShape({2, 3}));
  EXPECT_EQ(ShapeContext::merge(PartialShape(), {kAny, 3}, "a and b"), PartialShape({kAny, 3}));
  EXPECT_EQ(error_of([] {
              ShapeContext::merge({2, kAny}, {3, 3}, "a and b");
            }),
            "InvalidArgument: a and b have shapes [2,?] and [3,3], which must agree");
  EXPECT_EQ(ShapeContext::merge_dim(kAny, 4, "rows"), 4);
  EXPECT_EQ(error_of([] { ShapeContext::merge_dim(3, 4, "rows of a and b"); }),
            "InvalidArgument: rows of a and b are 3 and 4, which must agree");
}

TEST(ShapeContext, RanksAreCheckedWhereKnown) {
  const OpDef exact = define([](ShapeContext& c) { c.set_output(0, c.with_rank(0, 2)); }, 1);
  EXPECT_EQ(run(exact, {shaped(PartialShape())}).outputs[0].shape, PartialShape({kAny, kAny}));
  EXPECT_EQ(run(exact, {shaped({3})}).error, "InvalidArgument: x0 must have rank 2, got shape [3]");
  const OpDef least =
      define([](ShapeContext& c) { c.set_output(0, c.with_rank_at_least(0, 2)); }, 1);
  EXPECT_EQ(run(least, {shaped({3})}).error,
            "InvalidArgument: x0 must have rank at least 2, got shape [3]");
  EXPECT_EQ(run(least, {shaped({3, 4, 5})}).outputs[0].shape, PartialShape({3, 4, 5}));
}

TEST(ShapeContext, ShapesFromValues) {
  const OpDef def = define([](ShapeContext& c) { c.set_output(0, c.shape_from_value(0)); }, 1);
  EXPECT_EQ(run(def, {valued({2, std::nullopt, -1})}).outputs[0].shape,
            PartialShape({2, kAny, kAny}));
  EXPECT_EQ(run(def, {shaped({3})}).outputs[0].shape, PartialShape::unknown_with_rank(3));
  EXPECT_EQ(run(def, {shaped(PartialShape())}).outputs[0].shape, PartialShape());
  EXPECT_EQ(run(def, {valued({2, -2})}).error,
            "InvalidArgument: x0 holds the extent -2; extents are not negative");
  EXPECT_EQ(run(def, {shaped({2, 2})}).error,
            "InvalidArgument: x0 must be a vector of extents, got shape [2,2]");
  EXPECT_EQ(run(def, {shaped({33})}).error,
            "InvalidArgument: x0 has 33 extents, at most 32 are supported");
  EXPECT_EQ(run(def, {valued(std::vector<std::optional<int64_t>>(33, 1))}).error,
            "InvalidArgument: x0 has 33 extents, at most 32 are supported");
}

TEST(InferShapes, AFullyKnownValueBecomesAConstant) {
  const OpDef def = define([](ShapeContext& c) { c.set_value(0, {{4, 5}, false}); }, 0, "y: int32");
  const ValueInfo info = run(def, {}).outputs[0];
  EXPECT_EQ(info.shape, PartialShape({2}));
  ASSERT_TRUE(info.constant);
  EXPECT_EQ(info.constant->dtype(), DType::kInt32);
  EXPECT_EQ(info.constant->data<int32_t>()[1], 5);
}

TEST(InferShapes, APartlyKnownValueDoesNot) {
  const OpDef def = define(
      [](ShapeContext& c) {
        c.set_value(0, {{4, std::nullopt}, false});
      },
      0, "y: int64");
  const ValueInfo info = run(def, {}).outputs[0];
  EXPECT_EQ(info.shape, PartialShape({2}));
  EXPECT_FALSE(info.constant);
}

TEST(InferShapes, AValueBeyondInt32StaysAValue) {
  const OpDef def = define(
      [](ShapeContext& c) {
        c.set_value(0, {{int64_t{1} << 40}, true});
      },
      0, "y: int32");
  const ValueInfo info = run(def, {}).outputs[0];
  EXPECT_FALSE(info.constant);
  EXPECT_TRUE(info.value);
}

TEST(InferShapes, AConstantTellsShapeAndValue) {
  const OpDef def = define(
      [](ShapeContext& c) {
        c.set_constant(0, Tensor::vector<int64_t>({7, 8}));
      },
      0, "y: int64");
  const ValueInfo info = run(def, {}).outputs[0];
  EXPECT_EQ(info.shape, PartialShape({2}));
  ASSERT_TRUE(info.value);
  EXPECT_EQ(*info.value->elements[1], 8);
}

TEST(InferShapes, ContradictionsAreOurMistakes) {
  const OpDef shape = define(
      [](ShapeContext& c) {
        c.set_output(0, Shape({3}));
        c.set_value(0, {{4, 5}, false});
      },
      0, "y: int32");
  EXPECT_EQ(
      run(shape, {}).error,
      "Internal: the shape rule of \"X\" gives output 0 a value of shape [2] and the shape [3]");
  const OpDef dtype = define([](ShapeContext& c) { c.set_constant(0, Tensor::scalar(1.0)); }, 0);
  EXPECT_EQ(run(dtype, {}).error,
            "Internal: the shape rule of \"X\" gives output 0 a constant of dtype float64");
  const OpDef value = define([](ShapeContext& c) { c.set_value(0, {{4}, true}); }, 0);
  EXPECT_EQ(run(value, {}).error,
            "Internal: the shape rule of \"X\" gives output 0 an integer value, but its dtype is "
            "float32");
}

TEST(InferShapes, SharedRules) {
  EXPECT_EQ(run(define(unchanged_shape, 1), {shaped({2, kAny})}).outputs[0].shape,
            PartialShape({2, kAny}));
  EXPECT_EQ(run(define(scalar_shape, 1), {shaped({2})}).outputs[0].shape, PartialShape(Shape()));
  EXPECT_EQ(run(define(broadcast_binary_shape, 2), {shaped({2, 1}), shaped({3})}).outputs[0].shape,
            PartialShape({2, 3}));
  EXPECT_EQ(run(define(unknown_shape, 1), {shaped({2})}).outputs[0].shape, PartialShape());
}

TEST(PartialValue, OfConstants) {
  EXPECT_TRUE(partial_value_of(Tensor::scalar(int32_t{3}))->scalar);
  EXPECT_EQ(*partial_value_of(Tensor::vector<int64_t>({-3, 9}))->elements[0], -3);
  EXPECT_EQ(partial_value_of(Tensor::scalar(1.0F)), nullptr);
  EXPECT_EQ(partial_value_of(Tensor::zeros(DType::kInt32, Shape({2, 2}))), nullptr);
}

}  // namespace
}  // namespace treenail
