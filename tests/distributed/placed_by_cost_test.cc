// SPDX-License-Identifier: Apache-2.0
// Sessions at servers that are placed by what runs are predicted to cost: the bits of one process,
// pieces on several tasks, and state that another session finds again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "framework/placement/cost_placer.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::GraphBuilder;
using testing::error_of;

constexpr const char* kTasks[] = {"/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"};

class PlacedByCost : public test::InProcessCluster {
 protected:
  static CostModel spreading() {
    CostModel model;
    model.devices.push_back({parse_device_name("/device:CPU:*"), {1e3, 1e3, 1e-2}});
    model.links.push_back({{}, {}, 1e-9, 1e15});
    return model;
  }
  SessionOptions by_cost(const std::shared_ptr<Graph>& graph, const CostModel& model) const {
    SessionOptions options;
    options.placement = std::make_shared<const CostModel>(model);
    options.remote = open_remote_session(servers[1]->target(), graph, options);
    return options;
  }
  // Values that have come to any task from another.
  uint64_t passed() const {
    uint64_t values = 0;
    for (const auto& server : servers)
      for (const auto& each : server->transports()) values += each.values;
    return values;
  }
  static void expect_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].bytes(), b[i].bytes());
      EXPECT_EQ(std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()), 0) << i;
    }
  }
};

// A graph of element-wise operations on what is fed and on a variable.
struct RandomGraph {
  GraphBuilder b;
  std::vector<std::string> fetches;

  explicit RandomGraph(uint64_t seed, bool by_hand) {
    std::mt19937_64 random(seed);
    const Output x = b.placeholder(DType::kFloat32, {64}, "x");
    const Output handle = b.variable(DType::kFloat32, {64}, "v");
    b.node("AssignVariableOp", {handle, x}, {}, "assign");
    std::vector<Output> values{x, b.read(handle, DType::kFloat32)};
    for (int i = 0; i < 16; ++i) {
      const char* const binary[] = {"Add", "Mul", "Maximum"};
      const char* const unary[] = {"Tanh", "Exp", "Sin"};
      const Output left = values[random() % values.size()],
                   right = values[random() % values.size()];
      const std::string name = "n" + std::to_string(i);
      const Output made = random() % 2 == 0
                              ? b.op(binary[random() % 3], {left, right}, {}, name)
                              : b.op(unary[random() % 3], {b.op("Sin", {left})}, {}, name);
      const char* const task = kTasks[random() % 3];
      if (by_hand) b.graph->set_device(*made.node, task);
      values.push_back(made);
    }
    for (int i = 0; i < 3; ++i) fetches.push_back("n" + std::to_string(random() % 16) + ":0");
  }
};

TEST_P(PlacedByCost, RunsHaveTheBitsOfOneProcessAndOfPlacementByHand) {
  begin(2);
  if (IsSkipped()) return;
  Tensor x(DType::kFloat32, Shape({64}));
  for (int i = 0; i < 64; ++i) x.data<float>()[i] = 0.01f * static_cast<float>(i) - 0.3f;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph local(seed, false), hand(seed, true), cost(seed, false);
    Session here(local.b.graph);
    Session by_hand(hand.b.graph, at_worker(hand.b.graph));
    Session session(cost.b.graph, by_cost(cost.b.graph, spreading()));
    std::vector<std::vector<Tensor>> found;
    for (Session* each : {&here, &by_hand, &session}) {
      each->run({{"x:0", x}}, {}, {"assign"});
      found.push_back(each->run({{"x:0", x}}, each == &here ? local.fetches : cost.fetches));
    }
    expect_bits(found[0], found[1]);
    expect_bits(found[0], found[2]);
  }
}

TEST_P(PlacedByCost, WhatAsksForNothingMovesWhereItPays) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  Output sum = x;
  for (int i = 0; i < 6; ++i) {
    const Output other = b.op("Mul", {x, b.constant(Tensor::scalar(static_cast<float>(i)))});
    sum = b.op("Add", {sum, b.op("Exp", {other})}, {}, "z" + std::to_string(i));
  }
  CostModel dear = spreading();
  dear.links = {{{}, {}, 10.0, 1.0}};
  Session still(b.graph, by_cost(b.graph, dear));
  Session spread(b.graph, by_cost(b.graph, spreading()));
  const std::vector<Tensor> expected = still.run({{"x:0", test::floats({0.5f})}}, {"z5:0"});
  EXPECT_EQ(passed(), 0U);
  for (int i = 0; i < 20; ++i)  // the first values go by message, until who they are for is known
    expect_bits(spread.run({{"x:0", test::floats({0.5f})}}, {"z5:0"}), expected);
  if (GetParam() == test::Transport::kLent) {
    EXPECT_GT(passed(), 0U);  // of other transports nobody counts
  }
}

TEST_P(PlacedByCost, AnotherSessionFindsTheStateWhateverItsModel) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  std::vector<std::string> assigns, reads;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    const Output v = b.variable(DType::kFloat32, {2}, "v" + n);
    if (i == 3) b.graph->set_device(*v.node, kTasks[0]);
    b.node("AssignVariableOp", {v, b.op("Exp", {x})}, {}, "assign" + n);
    b.op("Neg", {b.read(v, DType::kFloat32)}, {}, "y" + n);
    assigns.push_back("assign" + n);
    reads.push_back("y" + n + ":0");
  }
  std::vector<Tensor> first;
  {
    Session session(b.graph, by_cost(b.graph, spreading()));
    session.run({{"x:0", test::floats({0, 1})}}, {}, assigns);
    first = session.run({}, reads);
  }
  CostModel other = spreading();
  PlacementProfile profile;
  for (const char* task : {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"})
    profile.set_device(concat(task, "/device:CPU:0"), {1'000'000'000'000, 1'000'000'000'000, 0});
  other.devices.clear();
  other.costs.profile = std::make_shared<const PlacementProfile>(profile);
  Session second(b.graph, by_cost(b.graph, other));
  expect_bits(second.run({}, reads), first);
  Session third(b.graph, at_worker(b.graph));
  expect_bits(third.run({}, reads), first);
}

TEST_P(PlacedByCost, RandomNumbersGoOnAndAreNotDrawnTwice) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output shape = b.constant(Tensor::vector<int32_t>({4}));
  const Output drawn =
      b.op("RandomUniform", {shape},
           {{"dtype", DType::kFloat32}, {"seed", int64_t{1}}, {"seed2", int64_t{2}}}, "r");
  for (int i = 0; i < 3; ++i) b.op("Exp", {drawn}, {}, "y" + std::to_string(i));
  Session here(b.graph);
  Session session(b.graph, by_cost(b.graph, spreading()));
  for (const char* fetch : {"y0:0", "y1:0", "y2:0", "r:0"})  // each a plan of its own
    expect_bits(session.run({}, {fetch}), here.run({}, {fetch}));
}

TEST_P(PlacedByCost, WhatDoesNotFitIsRefusedWithTheTasks) {
  begin(1);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {1000}, "v");
  b.op("Neg", {b.read(v, DType::kFloat32)}, {}, "y");
  CostModel model = spreading();
  model.devices[0].memory_bytes = 1000;
  Session session(b.graph, by_cost(b.graph, model));
  const std::string said = error_of([&] { session.run({}, {"y:0"}); });
  EXPECT_NE(said.find("ResourceExhausted: no placement fits the memory"), std::string::npos)
      << said;
  EXPECT_NE(said.find("/job:worker/replica:0/task:0/device:CPU:0: "), std::string::npos) << said;
  EXPECT_NE(said.find("/job:ps/replica:0/task:0/device:CPU:0: "), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(By, PlacedByCost,
                         ::testing::Values(test::Transport::kLent, test::Transport::kGrpc,
                                           test::Transport::kMemory),
                         test::name_of);

}  // namespace
}  // namespace treenail
