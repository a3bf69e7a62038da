// SPDX-License-Identifier: Apache-2.0
// Which nodes run together, seen from how many kernels a run takes, and that results stay the same.
#include "framework/runtime/fusion.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "framework/runtime/session.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;

SessionOptions separate() {
  SessionOptions options;
  options.fuse_elementwise = false;
  return options;
}

struct Result {
  std::vector<Tensor> values;
  int64_t kernels;
};

Result run(const GraphBuilder& b, const SessionOptions& options,
           const std::vector<std::pair<Output, Tensor>>& fed, const std::vector<Output>& fetches,
           const std::vector<Node*>& targets = {}, const std::vector<Node*>& before = {}) {
  Session session(b.graph, options);
  for (Node* node : before) session.run(session.signature({}, {}, std::vector<Node*>{node}), {});
  std::vector<Output> feeds;
  std::vector<Tensor> values;
  for (const auto& [output, value] : fed) {
    feeds.push_back(output);
    values.push_back(value);
  }
  RunMetadata metadata;
  Result result;
  result.values = session.run(session.signature(feeds, fetches, targets), values, {}, &metadata);
  result.kernels = metadata.nodes_executed;
  return result;
}

// Both ways; the values are the same to the bit. Returns the number of kernels fused.
int64_t fused_kernels(const GraphBuilder& b, const std::vector<std::pair<Output, Tensor>>& fed,
                      const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                      const std::vector<Node*>& before = {}) {
  const Result fused = run(b, {}, fed, fetches, targets, before);
  const Result plain = run(b, separate(), fed, fetches, targets, before);
  EXPECT_LE(fused.kernels, plain.kernels);
  for (size_t i = 0; i < fetches.size(); ++i) {
    EXPECT_EQ(fused.values[i].shape(), plain.values[i].shape());
    EXPECT_EQ(std::memcmp(fused.values[i].raw(), plain.values[i].raw(), plain.values[i].bytes()),
              0);
  }
  return fused.kernels;
}

TEST(Fusion, AChainIsOneKernel) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  Output y = x;
  for (int i = 0; i < 5; ++i) y = b.op("Tanh", {b.op("Add", {y, x})});
  EXPECT_EQ(fused_kernels(b, {{x, floats({-1, 0.5, 2})}}, {y}), 1);
}

TEST(Fusion, AValueReadElsewhereEndsAGroup) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output y = b.op("Neg", {b.op("Exp", {x})});
  const Output z = b.op("Square", {b.op("Abs", {y})});
  EXPECT_EQ(fused_kernels(b, {{x, floats({1, 2})}}, {z}), 1);
  EXPECT_EQ(fused_kernels(b, {{x, floats({1, 2})}}, {z, y}), 2) << "fetched";
  const Output w =
      b.op("MatMul", {b.op("Reshape", {y, b.constant(Tensor::vector<int32_t>({1, 2}))}),
                      b.op("Reshape", {z, b.constant(Tensor::vector<int32_t>({2, 1}))})});
  EXPECT_EQ(fused_kernels(b, {{x, floats({1, 2})}}, {w}), 5) << "two groups, two reshapes, w";
}

TEST(Fusion, ADiamondIsOneKernel) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output y = b.op("Exp", {x});
  const Output z = b.op("Mul", {b.op("Neg", {y}), b.op("Sub", {b.op("Square", {y}), x})});
  EXPECT_EQ(fused_kernels(b, {{x, floats({1, 2, 3})}}, {z}), 1);
}

TEST(Fusion, WhatIsBroadcastOnItsWayIsComputedOnce) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output row = b.placeholder(DType::kFloat32, PartialShape(), "row");
  const Output y = b.op("Neg", {b.op("Add", {x, b.op("Exp", {row})})});
  const Tensor wide = Tensor::zeros(DType::kFloat32, Shape({4, 2}));
  EXPECT_EQ(fused_kernels(b, {{x, wide}, {row, floats({1, 2})}}, {y}), 2);
  EXPECT_EQ(fused_kernels(b, {{x, floats({3, 4})}, {row, floats({1, 2})}}, {y}), 1);
}

TEST(Fusion, TypesChangeWithinAGroup) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output half = b.op("Cast", {x}, {{"DstT", DType::kFloat16}});
  const Output y = b.op("Cast", {b.op("Mul", {half, half})}, {{"DstT", DType::kFloat64}});
  const Output less = b.op("Less", {y, b.op("Square", {y})});
  const Output z = b.op("LogicalNot", {less});
  EXPECT_EQ(fused_kernels(b, {{x, floats({0.3f, 1.7f, -2.1f})}}, {z}), 1);
  EXPECT_EQ(fused_kernels(b, {{x, floats({0.3f, 1.7f, -2.1f})}}, {y}), 1);
}

TEST(Fusion, ManyNodesMakeSeveralGroups) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  Output y = x;
  for (int i = 0; i < 100; ++i) y = b.op("Add", {b.op("Neg", {y}), x});
  const int64_t kernels = fused_kernels(b, {{x, floats({1.5, 2})}}, {y});
  EXPECT_GE(kernels, 200 / 16);
  EXPECT_LE(kernels, 20);
}

TEST(Fusion, ManyInputsMakeSeveralGroups) {
  GraphBuilder b;
  std::vector<std::pair<Output, Tensor>> fed;
  Output y = b.constant(floats({0, 0}));
  for (int i = 0; i < 40; ++i) {
    fed.emplace_back(b.placeholder(DType::kFloat32, PartialShape(), "x" + std::to_string(i)),
                     floats({static_cast<float>(i), 1.0f / static_cast<float>(i + 1)}));
    y = b.op("Add", {b.op("Sin", {fed.back().first}), y});
  }
  EXPECT_LE(fused_kernels(b, fed, {y}), 10);
}

// A write to a variable waits for the readers of its earlier value, also where they moved into a
// group.
TEST(Fusion, ReadsComeBeforeTheWriteThatFollowsThem) {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, PartialShape(Shape({2})), "v");
  Node& initialize =
      b.node("AssignVariableOp", {v, b.constant(floats({1, 2}))}, {{"dtype", DType::kFloat32}});
  const Output read = b.read(v, DType::kFloat32);
  const Output early = b.op("Mul", {read, b.constant(floats({10, 10}))});
  Node& write = b.node("AssignAddVariableOp", {v, b.constant(floats({5, 5}))},
                       {{"dtype", DType::kFloat32}}, "write", {early.node});
  const Output later = b.op("ReadVariableOp", {v}, {{"dtype", DType::kFloat32}}, "later", {&write});
  const Output y = b.op("Neg", {b.op("Add", {early, later})});
  const Result fused = run(b, {}, {}, {y}, {}, {&initialize});
  EXPECT_EQ(fused.values[0].data<float>()[0], -16);
  EXPECT_EQ(fused.values[0].data<float>()[1], -27);
  fused_kernels(b, {}, {y}, {&write}, {&initialize});
}

TEST(Fusion, TheOutputMayTakeTheMemoryOfAnInput) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output m = b.op("MatMul", {x, x});
  const Output y = b.op("Sub", {b.op("Exp", {m}), b.op("Mul", {m, b.op("Neg", {m})})});
  const Output z = b.op("MatMul", {y, y});
  Tensor value(DType::kFloat32, Shape({33, 33}));
  for (int i = 0; i < 33 * 33; ++i) value.data<float>()[i] = static_cast<float>(i % 7) * 0.01f;
  EXPECT_EQ(fused_kernels(b, {{x, value}}, {z}), 3);
}

TEST(Fusion, EmptyAndScalarValues) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output y = b.op("Neg", {b.op("Exp", {b.op("Add", {x, x})})});
  EXPECT_EQ(fused_kernels(b, {{x, Tensor::zeros(DType::kFloat32, Shape({0, 3}))}}, {y}), 1);
  EXPECT_EQ(fused_kernels(b, {{x, Tensor::scalar(1.5f)}}, {y}), 1);
}

}  // namespace
}  // namespace treenail
