// SPDX-License-Identifier: Apache-2.0
// Pruning and common subexpressions. Constant folding runs kernels:
// tests/runtime/plan/fold_test.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/passes/cse.h"
#include "framework/graph/passes/prune.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::GraphBuilder;

int merge(GraphBuilder& g, std::vector<Node*> keep) {
  return merge_common_subexpressions(*g.graph, keep);
}

// "a:Add b:Mul ...": the nodes left, in creation order.
std::string nodes_text(const GraphBuilder& g) {
  std::string text;
  for (int id = 0; id < g.graph->num_nodes(); ++id) {
    const Node* node = g.graph->node(id);
    if (node != nullptr) text += (text.empty() ? "" : " ") + node->name() + ":" + node->type();
  }
  return text;
}

TEST(Prune, KeepsWhatValuesAndControlEdgesNeed) {
  GraphBuilder g;
  const Output a = g.placeholder(DType::kFloat32, {2}, "a");
  const Output unused = g.op("Neg", {a}, {}, "unused");
  g.op("Neg", {unused}, {}, "unused2");
  Node& effect = g.node("NoOp", {}, {}, "effect");
  Node& wanted = g.node("Neg", {a}, {}, "wanted", {&effect});
  Node* keep[] = {&wanted};
  EXPECT_EQ(prune(*g.graph, keep), 2);
  EXPECT_EQ(nodes_text(g), "a:Placeholder effect:NoOp wanted:Neg");
  EXPECT_EQ(a.node->consumers().size(), 1U);
}

TEST(Prune, WithNothingToKeepRemovesAll) {
  GraphBuilder g;
  g.op("Neg", {g.placeholder(DType::kFloat32, {2}, "x")});
  EXPECT_EQ(prune(*g.graph, {}), 2);
  EXPECT_EQ(nodes_text(g), "");
}

TEST(Prune, DeepGraphsNeedNoDeepStack) {
  GraphBuilder g;
  Output v = g.placeholder(DType::kFloat32, {2}, "x");
  for (int i = 0; i < 100000; ++i) v = g.op("Neg", {v}, {}, "n");
  Node* keep[] = {&g.node("NoOp", {}, {}, "keep")};
  EXPECT_EQ(prune(*g.graph, keep), 100001);
}

TEST(MergeCommon, EqualNodesBecomeOne) {
  GraphBuilder g;
  const Output x = g.placeholder(DType::kFloat32, {2}, "x");
  const Output a = g.op("Neg", {x}, {}, "a");
  const Output b = g.op("Neg", {x}, {}, "b");
  const Output a2 = g.op("Exp", {a}, {}, "a2");
  const Output b2 = g.op("Exp", {b}, {}, "b2");
  const Output sum = g.op("Sub", {a2, b2}, {}, "sum");
  EXPECT_EQ(merge(g, {sum.node}), 2);
  EXPECT_EQ(nodes_text(g), "x:Placeholder a:Neg a2:Exp sum:Sub");
  EXPECT_EQ(sum.node->input(0), sum.node->input(1));
}

TEST(MergeCommon, CommutativeInputsMayStandInAnyOrder) {
  GraphBuilder g;
  const Output x = g.placeholder(DType::kInt32, {2}, "x");
  const Output y = g.placeholder(DType::kInt32, {2}, "y");
  const Output ab = g.op("Mul", {x, y}, {}, "ab");
  const Output ba = g.op("Mul", {y, x}, {}, "ba");
  const Output minus = g.op("Sub", {x, y}, {}, "minus");
  const Output sunim = g.op("Sub", {y, x}, {}, "sunim");
  Node& end = g.node("IdentityN", {ab, ba, minus, sunim});
  EXPECT_EQ(merge(g, {&end}), 1);
  EXPECT_EQ(end.input(0), end.input(1));
  EXPECT_FALSE(end.input(2) == end.input(3));
}

// Zeros have signs, and two NaNs may differ: which one goes on depends on the order.
TEST(MergeCommon, FloatingPointInputsKeepTheirOrder) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    GraphBuilder g;
    const Output x = g.placeholder(dtype, {2}, "x");
    const Output y = g.placeholder(dtype, {2}, "y");
    std::vector<Output> numbers, truths;
    for (const char* op : {"Add", "Mul", "Maximum", "Minimum", "SquaredDifference"}) {
      numbers.push_back(g.op(op, {x, y}));
      numbers.push_back(g.op(op, {y, x}));
    }
    for (const char* op : {"Equal", "NotEqual", "ApproximateEqual"}) {
      truths.push_back(g.op(op, {x, y}));
      truths.push_back(g.op(op, {y, x}));
    }
    Node* keep[] = {&g.node("IdentityN", numbers), &g.node("IdentityN", truths)};
    EXPECT_EQ(merge_common_subexpressions(*g.graph, keep), 3) << dtype_name(dtype);
  }
}

TEST(MergeCommon, AttributesDevicesAndControlInputsDistinguish) {
  GraphBuilder g;
  const Output x = g.placeholder(DType::kFloat32, {2}, "x");
  Node& before = g.node("NoOp", {}, {}, "before");
  const Output plain = g.op("Neg", {x}, {}, "plain");
  const Output later = g.op("Neg", {x}, {}, "later", {&before});
  const Output elsewhere = g.op("Neg", {x}, {}, "elsewhere");
  g.graph->set_device(*elsewhere.node, "/device:CPU:1");
  const Output as_double = g.op("Cast", {x}, {{"DstT", DType::kFloat64}}, "as_double");
  const Output as_int = g.op("Cast", {x}, {{"DstT", DType::kInt32}}, "as_int");
  Node& end = g.node("IdentityN", {plain, later, elsewhere, as_double, as_int});
  EXPECT_EQ(merge(g, {&end}), 0);
}

TEST(MergeCommon, ConstantsMergeByBits) {
  GraphBuilder g;
  const Output a = g.constant(Tensor::vector({1.0F, 0.0F}), "a");
  const Output b = g.constant(Tensor::vector({1.0F, 0.0F}), "b");
  const Output c = g.constant(Tensor::vector({1.0F, -0.0F}), "c");
  Node& end = g.node("IdentityN", {a, b, c}, {}, "end");
  EXPECT_EQ(merge(g, {&end}), 1);
  EXPECT_EQ(nodes_text(g), "a:Const c:Const end:IdentityN");
}

TEST(MergeCommon, PlaceholdersStateAndRandomNumbersStay) {
  GraphBuilder g;
  const Output shape = g.constant(Tensor::vector<int32_t>({2}), "shape");
  const NamedAttrs random = {{"dtype", DType::kFloat32}, {"seed", 1}};
  const Output r1 = g.op("RandomUniform", {shape}, random, "r1");
  const Output r2 = g.op("RandomUniform", {shape}, random, "r2");
  const Output p1 = g.placeholder(DType::kFloat32, {2}, "p1");
  const Output p2 = g.placeholder(DType::kFloat32, {2}, "p2");
  g.variable(DType::kFloat32, {2}, "v1");
  g.variable(DType::kFloat32, {2}, "v2");
  Node& end = g.node("IdentityN", {r1, r2, p1, p2});
  EXPECT_EQ(merge(g, {&end}), 0);
}

TEST(MergeCommon, KeptNodesStayButOthersJoinThem) {
  GraphBuilder g;
  const Output x = g.placeholder(DType::kFloat32, {2}, "x");
  const Output a = g.op("Neg", {x}, {}, "a");
  const Output b = g.op("Neg", {x}, {}, "b");
  const Output c = g.op("Neg", {x}, {}, "c");
  EXPECT_EQ(merge(g, {a.node, b.node}), 1);
  EXPECT_EQ(nodes_text(g), "x:Placeholder a:Neg b:Neg");
  static_cast<void>(c);
}

TEST(MergeCommon, ControlEdgesMoveAlong) {
  GraphBuilder g;
  const Output x = g.placeholder(DType::kFloat32, {2}, "x");
  const Output a = g.op("Neg", {x}, {}, "a");
  const Output b = g.op("Neg", {x}, {}, "b");
  Node& end = g.node("NoOp", {}, {}, "end", {b.node});
  EXPECT_EQ(merge(g, {&end}), 1);
  ASSERT_EQ(end.control_inputs().size(), 1U);
  EXPECT_EQ(end.control_inputs()[0], a.node);
}

TEST(MergeCommon, ReadsMergeOnlyWithoutAWriteBetween) {
  GraphBuilder g;
  const Output v = g.variable(DType::kFloat32, {2}, "v");
  const Output one = g.constant(Tensor::vector({1.0F, 1.0F}), "one");
  const Output r1 = g.read(v, DType::kFloat32, "r1");
  const Output r2 = g.read(v, DType::kFloat32, "r2");
  Node& write = g.node("AssignAddVariableOp", {v, one}, {}, "write");
  const Output r3 = g.read(v, DType::kFloat32, "r3");
  Node& end = g.node("IdentityN", {r1, r2, r3}, {}, "end");
  EXPECT_EQ(merge(g, {&end, &write}), 1);
  EXPECT_EQ(end.input(0), end.input(1));
  EXPECT_FALSE(end.input(0) == end.input(2));
}

TEST(MergeCommon, WritesNeverMerge) {
  GraphBuilder g;
  const Output v = g.variable(DType::kFloat32, {2}, "v");
  const Output one = g.constant(Tensor::vector({1.0F, 1.0F}), "one");
  g.node("AssignAddVariableOp", {v, one}, {}, "w1");
  g.node("AssignAddVariableOp", {v, one}, {}, "w2");
  EXPECT_EQ(merge(g, {}), 0);
}

}  // namespace
}  // namespace treenail
