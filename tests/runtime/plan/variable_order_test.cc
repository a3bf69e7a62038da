// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/variable_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>

#include "framework/runtime/state/variable.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;

class VariableOrder : public ::testing::Test {
 protected:
  Output handle(const char* name) {
    const Output handle = b.variable(DType::kFloat32, {1}, name);
    Tensor value(DType::kResource, Shape());
    value.data<ResourceElement>()->object =
        make_counted<Variable>(name, DType::kFloat32, PartialShape({1}));
    handles[handle.node] = value;
    return handle;
  }
  Node& assign(Output variable, const char* name) {
    return b.node("AssignVariableOp", {variable, b.constant(floats({1}))}, {}, name);
  }
  static bool waits(const Node& node, const Node& before) {
    const auto inputs = node.control_inputs();
    return std::find(inputs.begin(), inputs.end(), &before) != inputs.end();
  }

  GraphBuilder b;
  std::unordered_map<const Node*, Tensor> handles;
};

TEST_F(VariableOrder, AWriteWaitsForReadsAndTheirConsumers) {
  const Output v = handle("v");
  const Output read = b.read(v, DType::kFloat32, "read");
  const Output view = b.op("Identity", {read}, {}, "view");
  const Output use = b.op("Neg", {view}, {}, "use");
  Node& write = assign(v, "write");
  order_variable_accesses(*b.graph, handles);
  EXPECT_TRUE(waits(write, *read.node));
  EXPECT_TRUE(waits(write, *view.node));
  EXPECT_TRUE(waits(write, *use.node));
}

TEST_F(VariableOrder, AReadCreatedAfterAWriteWaitsForIt) {
  const Output v = handle("v");
  Node& first = assign(v, "first");
  Node& second = assign(v, "second");
  const Output read = b.read(v, DType::kFloat32, "read");
  order_variable_accesses(*b.graph, handles);
  EXPECT_TRUE(waits(second, first));
  EXPECT_TRUE(waits(*read.node, second));
  EXPECT_FALSE(waits(*read.node, first));
}

TEST_F(VariableOrder, AConsumerBehindTheWriteIsNotWaitedFor) {
  const Output v = handle("v");
  const Output read = b.read(v, DType::kFloat32, "read");
  Node& write = assign(v, "write");
  const Output late = b.op("Neg", {read}, {}, "late", {&write});
  order_variable_accesses(*b.graph, handles);
  EXPECT_TRUE(waits(write, *read.node));
  EXPECT_FALSE(waits(write, *late.node));
  EXPECT_EQ(topological_order(*b.graph).size(), static_cast<size_t>(b.graph->num_nodes()))
      << "no cycle";
}

TEST_F(VariableOrder, OtherVariablesAreLeftAlone) {
  const Output v = handle("v");
  const Output w = handle("w");
  const Output read = b.read(v, DType::kFloat32, "read");
  Node& write = assign(w, "write");
  order_variable_accesses(*b.graph, handles);
  EXPECT_FALSE(waits(write, *read.node));
}

TEST_F(VariableOrder, UpdatesThatAloneHoldAComputedValueRunEarly) {
  const Output v = handle("v");
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  const Output shared = b.op("Neg", {x}, {}, "shared"), own = b.op("Exp", {x}, {}, "own");
  const Node& takes = b.node("AssignVariableOp", {v, own}, {}, "takes");
  const Node& shares = b.node("AssignVariableOp", {v, shared}, {}, "shares");
  const Node& counts = assign(v, "counts");
  b.op("Neg", {shared}, {}, "another");
  const std::vector<bool> early = early_updates(*b.graph, handles);
  EXPECT_TRUE(early[static_cast<size_t>(takes.id())]);
  EXPECT_FALSE(early[static_cast<size_t>(shares.id())]);
  EXPECT_FALSE(early[static_cast<size_t>(counts.id())]);
  EXPECT_FALSE(early[static_cast<size_t>(own.node->id())]);
}

}  // namespace
}  // namespace treenail
