// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;

template <class F>
std::string error_of(F&& f, Code expected) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(code_name(error.code()), code_name(expected)) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

// inputs and consumers of all nodes must tell the same edges.
void expect_consistent(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node == nullptr) continue;
    std::vector<const Node*> expected;
    for (int other = 0; other < graph.num_nodes(); ++other) {
      const Node* consumer = graph.node(other);
      if (consumer == nullptr) continue;
      for (const Output& input : consumer->inputs()) {
        if (input.node == node) expected.push_back(consumer);
      }
      for (const Node* before : consumer->control_inputs()) {
        if (before == node) expected.push_back(consumer);
      }
    }
    std::vector<const Node*> told(node->consumers().begin(), node->consumers().end());
    std::sort(expected.begin(), expected.end());
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, expected) << node->name();
  }
}

TEST(Graph, NamesAreMadeUniqueWithoutRegardToCase) {
  GraphBuilder b;
  const Tensor one = Tensor::scalar(1.0f);
  EXPECT_EQ(b.constant(one, "x").node->name(), "x");
  EXPECT_EQ(b.constant(one, "x").node->name(), "x_1");
  EXPECT_EQ(b.constant(one, "X").node->name(), "X_2");
  EXPECT_EQ(b.constant(one, "x_1").node->name(), "x_1_1");
  EXPECT_EQ(b.constant(one).node->name(), "Const");
  EXPECT_EQ(b.constant(one, "scope/x").node->name(), "scope/x");
  EXPECT_EQ(b.graph->find("X_2")->name(), "X_2");
  EXPECT_EQ(b.graph->find("absent"), nullptr);
}

// A search that marks nothing goes on where the last one ended, and gives the same names.
TEST(Graph, NamesAskedForButNotTakenAreGivenAgain) {
  Graph graph;
  EXPECT_EQ(graph.unique_name("v"), "v");
  EXPECT_EQ(graph.unique_name("v_1"), "v_1");
  EXPECT_EQ(graph.unique_name("v", false), "v_2");
  EXPECT_EQ(graph.unique_name("v", false), "v_2");
  EXPECT_EQ(graph.unique_name("v_2"), "v_2");
  EXPECT_EQ(graph.unique_name("V", false), "V_3");
  EXPECT_EQ(graph.unique_name("v"), "v_3");
}

TEST(Graph, LongNamesAreUniqueWhateverTheirCase) {
  Graph graph;
  const std::string name(1000, 'a');
  EXPECT_EQ(graph.unique_name(name), name);
  const std::string capital(1000, 'A');
  EXPECT_EQ(graph.unique_name(capital), capital + "_1");
  EXPECT_EQ(graph.unique_name(name + "_1"), name + "_1_1");
  EXPECT_EQ(graph.unique_name(name + "b"), name + "b");
}

TEST(Graph, AFailedAddLeavesNothingBehind) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2, 3}, "x");
  const Output y = b.placeholder(DType::kFloat32, {4, 5}, "y");
  const int nodes = b.graph->num_nodes();
  const std::string text = error_of(
      [&] {
        b.op("MatMul", {x, y}, {}, "product");
      },
      Code::kInvalidArgument);
  EXPECT_EQ(text.find("[MatMul node \"product\"] "), 0u) << text;
  EXPECT_NE(text.find("[2,3]"), std::string::npos) << text;
  EXPECT_NE(text.find("[4,5]"), std::string::npos) << text;
  EXPECT_EQ(b.graph->num_nodes(), nodes);
  EXPECT_EQ(b.graph->unique_name("product", false), "product");
  expect_consistent(*b.graph);
}

TEST(Graph, RefusesWhatDoesNotBelong) {
  GraphBuilder b, other;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  const Output foreign = other.placeholder(DType::kFloat32, {2}, "foreign");
  EXPECT_NE(error_of([&] { b.op("NoSuchOp", {}); }, Code::kNotFound).find("NoSuchOp"),
            std::string::npos);
  EXPECT_NE(error_of(
                [&] {
                  b.op("Add", {x, foreign});
                },
                Code::kInvalidArgument)
                .find("not a value of this graph"),
            std::string::npos);
  EXPECT_NE(error_of(
                [&] {
                  b.op("Add", {x, Output{x.node, 1}});
                },
                Code::kInvalidArgument)
                .find("1 outputs"),
            std::string::npos);
  EXPECT_NE(error_of([&] { b.op("NoOp", {}, {}, "", {foreign.node}); }, Code::kInvalidArgument)
                .find("control input is not a node of this graph"),
            std::string::npos);
  for (const char* name : {"a b", "/x", "x:0", "-x", "\n"}) {
    EXPECT_NE(error_of([&] { b.op("NoOp", {}, {}, name); }, Code::kInvalidArgument)
                  .find("not a valid node name"),
              std::string::npos)
        << name;
  }
}

TEST(Graph, FindsValuesByName) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "scope/x");
  EXPECT_EQ(b.graph->find_output("scope/x:0"), x);
  EXPECT_EQ(b.graph->find_output("scope/x"), x);
  EXPECT_NE(error_of([&] { b.graph->find_output("y:0"); }, Code::kNotFound), "");
  for (const char* bad :
       {"scope/x:", "scope/x:1", "scope/x:-1", "scope/x:0x0", "scope/x:99999999999999999999"}) {
    EXPECT_NE(error_of([&] { b.graph->find_output(bad); }, Code::kInvalidArgument).find(bad),
              std::string::npos);
  }
}

TEST(Graph, ChangesMoveTheEpochAdditionsDoNot) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output y = b.placeholder(DType::kFloat32, {kUnknown}, "y");
  const Output z = b.op("Neg", {x}, {}, "z");
  EXPECT_EQ(b.graph->epoch(), 0);
  b.graph->set_input(*z.node, 0, y);
  EXPECT_EQ(z.node->input(0), y);
  EXPECT_EQ(b.graph->epoch(), 1);
  b.graph->add_control_input(*z.node, *x.node);
  b.graph->add_control_input(*z.node, *x.node);  // there already: no change
  EXPECT_EQ(b.graph->epoch(), 2);
  b.graph->set_device(*z.node, "/cpu:0");
  b.graph->set_shape(x, {3});
  b.graph->set_shape(x, {3});  // known already: no plan is made anew
  EXPECT_EQ(b.graph->epoch(), 4);
  EXPECT_EQ(x.node->info(0).shape, PartialShape({3}));
  expect_consistent(*b.graph);
}

TEST(Graph, RefusesCycles) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  const Output z = b.op("Neg", {y}, {}, "z");
  EXPECT_NE(error_of([&] { b.graph->add_control_input(*x.node, *z.node); }, Code::kInvalidArgument)
                .find("cycle"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { b.graph->set_input(*y.node, 0, z); }, Code::kInvalidArgument).find("cycle"),
      std::string::npos);
  EXPECT_NE(error_of([&] { b.graph->add_control_input(*x.node, *x.node); }, Code::kInvalidArgument)
                .find("cycle"),
            std::string::npos);
  expect_consistent(*b.graph);
}

TEST(Graph, AFinalizedGraphIsNotChanged) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  b.graph->finalize();
  EXPECT_NE(error_of([&] { b.op("Neg", {x}); }, Code::kFailedPrecondition).find("finalized"),
            std::string::npos);
  EXPECT_NE(error_of([&] { b.graph->set_device(*x.node, ""); }, Code::kFailedPrecondition), "");
}

TEST(Graph, PassesMayReplaceAndRemove) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  const Output twin = b.op("Neg", {x}, {}, "twin");
  const Output sum = b.op("Add", {twin, twin}, {}, "sum", {twin.node});
  b.graph->replace_uses(twin, y);
  b.graph->move_control_uses(*twin.node, *y.node);
  std::vector<bool> needed(static_cast<size_t>(b.graph->num_nodes()), true);
  needed[static_cast<size_t>(twin.node->id())] = false;
  b.graph->remove_unless(needed);
  EXPECT_EQ(sum.node->input(0), y);
  EXPECT_EQ(sum.node->input(1), y);
  ASSERT_EQ(sum.node->control_inputs().size(), 1u);
  EXPECT_EQ(sum.node->control_inputs()[0], y.node);
  EXPECT_EQ(b.graph->find("twin"), nullptr);
  expect_consistent(*b.graph);
}

TEST(Graph, PassesMayRewireInputsOneByOne) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  const Output sum = b.op("Add", {x, x}, {}, "sum", {x.node});
  b.graph->rewire([&](const Node& consumer, int i) {
    return &consumer == sum.node && i == 1 ? y : consumer.input(i);
  });
  EXPECT_EQ(sum.node->input(0), x);
  EXPECT_EQ(sum.node->input(1), y);
  EXPECT_EQ(sum.node->control_inputs()[0], x.node);
  expect_consistent(*b.graph);
}

TEST(Graph, PassesMayMergeNodes) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  const Output twin = b.op("Neg", {x}, {}, "twin");
  const Output late = b.op("Sin", {twin}, {}, "late", {y.node, twin.node});
  const Output sum = b.op("Add", {twin, y}, {}, "sum");
  std::vector<Node*> into(static_cast<size_t>(b.graph->num_nodes()));
  into[static_cast<size_t>(twin.node->id())] = y.node;
  b.graph->merge(into);
  EXPECT_EQ(late.node->input(0), y);
  ASSERT_EQ(late.node->control_inputs().size(), 1u);
  EXPECT_EQ(late.node->control_inputs()[0], y.node);
  EXPECT_EQ(sum.node->input(0), y);
  EXPECT_EQ(sum.node->input(1), y);
  EXPECT_EQ(b.graph->find("twin"), nullptr);
  expect_consistent(*b.graph);
}

TEST(Graph, NodesWithTheSameNameButForItsCaseAreFoundEach) {
  GraphBuilder b;
  const Output upper = b.constant(Tensor::scalar(1.0f), "X");
  const NamedAttrs attrs = {{"dtype", DType::kFloat32}, {"value", Tensor::scalar(2.0f)}};
  Node& lower = b.graph->add(
      {.op = "Const", .name = "x", .inputs = {}, .attrs = attrs, .name_reserved = true});
  EXPECT_EQ(lower.name(), "x");
  EXPECT_EQ(b.graph->find("x"), &lower);
  EXPECT_EQ(b.graph->find("X"), upper.node);
  EXPECT_EQ(b.constant(Tensor::scalar(3.0f), "x").node->name(), "x_1");
  for (int i = 0; i < 1000; ++i) b.constant(Tensor::scalar(4.0f), "x");  // the table grows
  EXPECT_EQ(b.graph->find("x"), &lower);
  EXPECT_EQ(b.graph->find("X"), upper.node);
  EXPECT_EQ(b.graph->find("x_1001")->name(), "x_1001");
}

TEST(Graph, WhatIsLearntOfAValueIsLearntOfItAlone) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  const Output z = b.op("Neg", {y}, {}, "z");
  b.graph->set_shape(y, PartialShape{3});
  EXPECT_EQ(to_text(x.node->info(0).shape), "[?]");
  EXPECT_EQ(to_text(y.node->info(0).shape), "[3]");
  EXPECT_EQ(to_text(z.node->info(0).shape), "[?]");
}

TEST(Graph, TopologicalOrderTakesTheLowestIdThatIsFree) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  const Output w = b.op("Neg", {x}, {}, "w");
  const Output z = b.constant(floats({1, 2}), "z");
  b.graph->add_control_input(*y.node, *z.node);  // y now waits for a later node
  std::vector<std::string> names;
  for (const Node* node : topological_order(*b.graph)) names.push_back(node->name());
  EXPECT_EQ(names, (std::vector<std::string>{"x", "w", "z", "y"}));
  EXPECT_EQ(w.node->id(), 2);
}

TEST(Graph, TopologicalOrderTakesUrgentNodesFirst) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  b.op("Neg", {x}, {}, "y");
  const Output w = b.op("Neg", {x}, {}, "w");
  const Output v = b.op("Neg", {w}, {}, "v");
  std::vector<bool> urgent(static_cast<size_t>(b.graph->num_nodes()));
  urgent[static_cast<size_t>(v.node->id())] = urgent[static_cast<size_t>(w.node->id())] = true;
  std::vector<std::string> names;
  for (const Node* node : topological_order(*b.graph, urgent)) names.push_back(node->name());
  EXPECT_EQ(names, (std::vector<std::string>{"x", "w", "v", "y"}));
}

}  // namespace
}  // namespace treenail
