// SPDX-License-Identifier: Apache-2.0
// Which nodes run together, seen from how many kernels a run takes, and that results stay the same.
#include "framework/runtime/plan/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/run/session.h"
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
  EXPECT_EQ(fused_kernels(b, {{x, value}}, {z}), 3) << "m, y in its memory, z";
  const Output sum = b.op("Sum", {m, b.constant(Tensor::vector<int32_t>({0}))});
  EXPECT_EQ(fused_kernels(b, {{x, value}}, {z, sum}), 4) << "and the sum of m";
}

Tensor pattern(const Shape& shape) {
  Tensor value(DType::kFloat32, shape);
  for (int64_t i = 0; i < value.num_elements(); ++i)
    value.data<float>()[i] = static_cast<float>(i * 7 % 23) * 0.1f - 1;
  return value;
}

// The product reads a variable: the write behind it must not come between it and its group.
TEST(Fusion, AProductStaysBeforeTheWriteThatFollowsIt) {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, PartialShape(Shape({2, 2})), "v");
  Tensor ones(DType::kFloat32, Shape({2, 2}));
  std::fill_n(ones.data<float>(), 4, 1.0f);
  Node& initialize =
      b.node("AssignVariableOp", {v, b.constant(ones)}, {{"dtype", DType::kFloat32}});
  const Output read = b.read(v, DType::kFloat32);
  const Output product = b.op("MatMul", {read, read});
  Node& write = b.node("AssignAddVariableOp", {v, b.constant(ones)}, {{"dtype", DType::kFloat32}},
                       "write", {product.node});
  const Output later = b.op("ReadVariableOp", {v}, {{"dtype", DType::kFloat32}}, "later", {&write});
  const Output y = b.op("Sub", {product, later});
  const Result fused = run(b, {}, {}, {y}, {}, {&initialize});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(fused.values[0].data<float>()[i], 0);
}

TEST(Fusion, AGroupIsComputedWhereAReductionReadsIt) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output squares = b.op("Square", {b.op("Sub", {x, b.constant(Tensor::scalar(0.5f))})});
  const Output rows = b.op("Mean", {squares, b.constant(Tensor::vector<int32_t>({1}))});
  const Output columns = b.op("Sum", {squares, b.constant(Tensor::vector<int32_t>({0}))});
  const std::vector<std::pair<Output, Tensor>> fed = {{x, pattern(Shape({130, 190}))}};
  EXPECT_EQ(fused_kernels(b, fed, {rows}), 1);
  EXPECT_EQ(fused_kernels(b, fed, {columns}), 2) << "columns are read from memory";
  EXPECT_EQ(fused_kernels(b, fed, {rows, squares}), 2) << "fetched";
  EXPECT_EQ(fused_kernels(b, fed, {rows, columns}), 3) << "read twice";
  EXPECT_EQ(fused_kernels(b, fed, {b.op("L2Loss", {b.op("Neg", {x})})}), 1) << "of one op";
  const Output spread = b.op("Sub", {rows, b.op("Exp", {rows})});
  EXPECT_EQ(fused_kernels(b, fed, {spread}), 2) << "a group behind it is another";
  EXPECT_EQ(fused_kernels(b, {{x, pattern(Shape({900, 9}))}}, {rows}), 2) << "short rows";
}

// A write that waits for a member comes later than the reduction here: the group may move to it.
TEST(Fusion, AGroupMovesToAReductionBeforeTheWriteBehindIt) {
  GraphBuilder b;
  const Tensor ones = pattern(Shape({400}));
  const Output v = b.variable(DType::kFloat32, PartialShape(Shape({400})), "v");
  Node& initialize =
      b.node("AssignVariableOp", {v, b.constant(ones)}, {{"dtype", DType::kFloat32}});
  const Output read = b.read(v, DType::kFloat32);
  const Output squares = b.op("Mul", {b.op("Add", {read, read}), read});
  const Output sum = b.op("Sum", {squares, b.constant(Tensor::vector<int32_t>({0}))});
  Node& write = b.node("AssignAddVariableOp", {v, b.constant(ones)}, {{"dtype", DType::kFloat32}},
                       "write", {squares.node});
  EXPECT_EQ(fused_kernels(b, {}, {sum}, {&write}, {&initialize}), 3)
      << "the read, the sum, the write";
}

// The group moves to its reduction: a write behind one of its members comes first there.
TEST(Fusion, AReductionIsNotFedPastAWriteBehindTheGroup) {
  GraphBuilder b;
  const Tensor ones = floats({1, 1});
  const Output v = b.variable(DType::kFloat32, PartialShape(Shape({2})), "v");
  Node& initialize =
      b.node("AssignVariableOp", {v, b.constant(ones)}, {{"dtype", DType::kFloat32}});
  const Output read = b.read(v, DType::kFloat32);
  const Output twice = b.op("Add", {read, read});
  Node& write = b.node("AssignAddVariableOp", {v, b.constant(ones)}, {{"dtype", DType::kFloat32}},
                       "write", {twice.node});
  const Output sum =
      b.op("Sum", {twice, b.constant(Tensor::vector<int32_t>({0}))}, {}, "sum", {&write});
  const Result fused = run(b, {}, {}, {sum}, {}, {&initialize});
  EXPECT_EQ(fused.values[0].data<float>()[0], 4);
}

TEST(Fusion, EmptyAndScalarValues) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  const Output y = b.op("Neg", {b.op("Exp", {b.op("Add", {x, x})})});
  EXPECT_EQ(fused_kernels(b, {{x, Tensor::zeros(DType::kFloat32, Shape({0, 3}))}}, {y}), 1);
  EXPECT_EQ(fused_kernels(b, {{x, Tensor::scalar(1.5f)}}, {y}), 1);
}

// How many edges are looked at for `nodes`, all of whose values have one shape.
int64_t edges_looked_at(const GraphBuilder& b) {
  const std::vector<Node*> order = topological_order(*b.graph);
  const PartialShape shape{2};
  const Fuser& fuser = KernelRegistry::instance().fuser();
  std::vector<FusionCandidate> candidates(order.size(), {0, &fuser, true, &shape});
  int64_t looked_at = 0;
  const auto groups = find_fusion_groups(order, candidates, &looked_at);
  for (const FusionGroup& group : groups) {
    size_t operands = 0;
    for (const Node* member : group.members) operands += member->inputs().size();
    EXPECT_LE(group.members.size(), kMostFusedOps);
    EXPECT_LE(group.inputs.size(), kMostFusedInputs);
    EXPECT_LE(operands, kMostFusedOperands);
  }
  return looked_at;
}

enum class Terms { kOwn, kShared, kProducts, kOneValue };

int64_t edges_of_sum(Terms terms, int n) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  std::vector<Output> inputs;
  for (int i = 0; i < n; ++i) {
    const std::string name = "x" + std::to_string(i);
    switch (terms) {
      case Terms::kOwn:
        inputs.push_back(b.op("Sin", {b.placeholder(DType::kFloat32, {2}, name)}));
        break;
      case Terms::kShared:
        inputs.push_back(b.op("Sin", {b.op("Add", {x, i % 2 == 0 ? x : inputs.back()})}));
        break;
      case Terms::kProducts:
        inputs.push_back(b.op("Cumsum", {x, b.constant(Tensor::scalar(0))}));
        break;
      case Terms::kOneValue:
        inputs.push_back(x);
        break;
    }
  }
  b.op("Relu", {b.op("AddN", inputs)});
  return edges_looked_at(b);
}

TEST(Fusion, WhatIsLookedAtGrowsWithTheGraph) {
  for (const Terms terms : {Terms::kOwn, Terms::kShared, Terms::kProducts, Terms::kOneValue}) {
    const int64_t some = edges_of_sum(terms, 200);
    EXPECT_LE(edges_of_sum(terms, 2000), 10 * some + 100) << static_cast<int>(terms);
    EXPECT_LE(some, 200 * 60) << static_cast<int>(terms);
  }
}

// A sum of many values is a node of its own where they are more than a group may have.
TEST(Fusion, SumsOfAnyNumberOfValues) {
  for (const int n : {1, 2, 3, 11, 12, 13, 15, 16, 17, 18, 24, 25, 47, 48, 49, 64, 65, 70}) {
    GraphBuilder b;
    std::vector<std::pair<Output, Tensor>> fed;
    std::vector<Output> inputs, negated;
    for (int i = 0; i < n; ++i) {
      fed.emplace_back(b.placeholder(DType::kFloat32, PartialShape(), "x" + std::to_string(i)),
                       floats({static_cast<float>(i), 1.0f / static_cast<float>(i + 1)}));
      inputs.push_back(fed.back().first);
      negated.push_back(b.op("Neg", {inputs.back()}));
    }
    const Output alone = b.op("AddN", inputs);
    const Output y = b.op("Exp", {b.op("Sub", {b.op("AddN", negated), inputs[0]})});
    const Result plain = run(b, separate(), fed, {alone});
    for (int k = 0; k < 2; ++k) {
      float sum = 0;
      for (const auto& [value, tensor] : fed) sum += tensor.data<float>()[k];
      EXPECT_EQ(plain.values[0].data<float>()[k], sum);
    }
    fused_kernels(b, fed, {alone});
    fused_kernels(b, fed, {y});
    fused_kernels(b, fed, {b.op("AddN", std::vector<Output>(static_cast<size_t>(n), inputs[0]))});
  }
}

}  // namespace
}  // namespace treenail
