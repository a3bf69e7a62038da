// SPDX-License-Identifier: Apache-2.0
// Constant folding: what becomes a constant, what must not, and what stays ordered.
#include "framework/runtime/plan/fold.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/graph/passes/prune.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;

constexpr auto everywhere = [](const Node&) { return true; };

// Folds, and gives input `i` of `end`.
const Node& folded_input(GraphBuilder& b, Node& end, int i = 0) {
  Node* keep[] = {&end};
  fold_constants(*b.graph, keep, everywhere);
  return *end.input(i).node;
}

std::vector<float> values_of(const Node& node) {
  EXPECT_EQ(node.type(), "Const");
  const auto values = node.op().get<Tensor>("value").values<float>();
  return {values.begin(), values.end()};
}

TEST(Fold, ChainsOfConstants) {
  GraphBuilder b;
  const Output sum =
      b.op("Add", {b.constant(floats({1, 2}), "a"), b.constant(floats({3, 4}), "c")}, {}, "sum");
  Node& end = b.node("IdentityN", {b.op("Neg", {sum}, {}, "minus")}, {}, "end");
  EXPECT_EQ(values_of(folded_input(b, end)), (std::vector<float>{-4, -6}));
  Node* keep[] = {&end};
  prune(*b.graph, keep);
  int left = 0;
  for (int id = 0; id < b.graph->num_nodes(); ++id) left += b.graph->node(id) != nullptr ? 1 : 0;
  EXPECT_EQ(left, 2);
}

TEST(Fold, TheConstantCarriesItsOriginsIdentity) {
  GraphBuilder b;
  const Output minus = b.op("Neg", {b.constant(floats({1}), "a")}, {}, "scope/minus");
  b.graph->set_device(*minus.node, "/device:CPU:0");
  const int id = minus.node->original_id();
  Node& end = b.node("IdentityN", {minus}, {}, "end");
  const Node& constant = folded_input(b, end);
  EXPECT_EQ(constant.original_name(), "scope/minus");
  EXPECT_EQ(constant.original_id(), id);
  EXPECT_EQ(constant.device(), "/device:CPU:0");
}

TEST(Fold, ShapesAreKnownWithoutTheirValues) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2, 3}, "x");
  Node& end = b.node("IdentityN", {b.op("Shape", {x}, {}, "shape")}, {}, "end");
  const Node& constant = folded_input(b, end);
  ASSERT_EQ(constant.type(), "Const");
  EXPECT_EQ(constant.op().attr("value"), AttrValue(Tensor::vector<int32_t>({2, 3})));
  EXPECT_TRUE(constant.control_inputs().size() <= 1);
}

TEST(Fold, UnknownShapesStay) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2, kUnknown}, "x");
  Node& end = b.node("IdentityN", {b.op("Shape", {x}, {}, "shape")}, {}, "end");
  EXPECT_EQ(folded_input(b, end).type(), "Shape");
}

TEST(Fold, StatefulAndKeptNodesStay) {
  GraphBuilder b;
  const Output shape = b.constant(Tensor::vector<int32_t>({2}), "shape");
  const Output random =
      b.op("RandomUniform", {shape}, {{"dtype", DType::kFloat32}, {"seed", 1}}, "random");
  const Output target = b.op("Neg", {b.constant(floats({1}), "c")}, {}, "target");
  Node& end = b.node("IdentityN", {random, target}, {}, "end");
  Node* keep[] = {&end, target.node};
  fold_constants(*b.graph, keep, everywhere);
  EXPECT_EQ(end.input(0).node->type(), "RandomUniform");
  EXPECT_EQ(end.input(1).node->type(), "Neg");
}

TEST(Fold, FailingOpsAreLeftToFail) {
  GraphBuilder b;
  const auto ints = [&b](int32_t v) { return b.constant(Tensor::vector<int32_t>({v})); };
  Node& end = b.node("IdentityN", {b.op("FloorDiv", {ints(1), ints(0)}, {}, "q")}, {}, "end");
  EXPECT_EQ(folded_input(b, end).type(), "FloorDiv");
}

TEST(Fold, LargeResultsStay) {
  GraphBuilder b;
  const Output one = b.constant(Tensor::scalar(1.0F), "one");
  const auto fill = [&](int32_t n) {
    return b.op("Fill", {b.constant(Tensor::vector<int32_t>({n})), one});
  };
  Node& end = b.node("IdentityN", {fill(1 << 18), fill((1 << 18) + 1)}, {}, "end");
  EXPECT_EQ(folded_input(b, end, 0).type(), "Const");
  EXPECT_EQ(folded_input(b, end, 1).type(), "Fill");
}

TEST(Fold, ControlEdgesStay) {
  GraphBuilder b;
  Node& before = b.node("NoOp", {}, {}, "before");
  const Output a = b.op("Neg", {b.constant(floats({1}), "c")}, {}, "a", {&before});
  Node& end = b.node("IdentityN", {b.op("Neg", {a}, {}, "again")}, {}, "end");
  Node& after = b.node("NoOp", {}, {}, "after", {a.node});
  Node* keep[] = {&end, &after};
  fold_constants(*b.graph, keep, everywhere);
  ASSERT_EQ(end.input(0).node->type(), "Const");
  ASSERT_EQ(end.input(0).node->control_inputs().size(), 1U);
  EXPECT_EQ(end.input(0).node->control_inputs()[0], &before);
  ASSERT_EQ(after.control_inputs().size(), 1U);
  EXPECT_EQ(after.control_inputs()[0]->type(), "Const");
  EXPECT_EQ(after.control_inputs()[0]->control_inputs()[0], &before);
}

TEST(Fold, AShapeBehindASideEffectWaitsForIt) {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {2}, "v");
  Node& write = b.node("AssignVariableOp", {v, b.constant(floats({1, 2}), "c")}, {}, "write");
  const Output read = b.op("ReadVariableOp", {v}, {{"dtype", DType::kFloat32}}, "read", {&write});
  Node& end = b.node("IdentityN", {b.op("Shape", {read}, {}, "shape")}, {}, "end");
  const Node& constant = folded_input(b, end);
  ASSERT_EQ(constant.type(), "Const");
  ASSERT_EQ(constant.control_inputs().size(), 1U);
  EXPECT_EQ(constant.control_inputs()[0], read.node);
}

TEST(Fold, OnADeviceWithBitsOfItsOwnOnlyWhatHasNone) {
  GraphBuilder b;
  const Output neg = b.op("Neg", {b.constant(floats({1}), "c")}, {}, "neg");
  const Output whole = b.op("Neg", {b.constant(Tensor::vector<int32_t>({1}), "i")}, {}, "whole");
  const Output less = b.op("Less", {b.constant(floats({1}), "x"), b.constant(floats({2}), "y")});
  Node& end = b.node("IdentityN", {neg, whole, less}, {}, "end");
  Node* keep[] = {&end};
  fold_constants(*b.graph, keep, [](const Node&) { return false; });
  EXPECT_EQ(end.input(0).node->type(), "Neg");
  EXPECT_EQ(end.input(1).node->type(), "Const");
  EXPECT_EQ(end.input(2).node->type(), "Const");
}

}  // namespace
}  // namespace treenail
