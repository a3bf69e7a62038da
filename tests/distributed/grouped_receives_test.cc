// SPDX-License-Identifier: Apache-2.0
// Many values between tasks, small ones here, asked for together by message, or one by one from a
// task of the same host: the same values, and none waits for another. Large ones over MPI:
// mpi_values_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/grouped_receives.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;
using testing::error_of;

constexpr const char* kPs = "/job:ps/task:0";
constexpr const char* kWorker = "/job:worker/task:0";

// By message, and by local sockets.
class SmallReceive : public test::InProcessCluster {
 protected:
  void SetUp() override {
    InProcessCluster::SetUp();
    begin(1);
  }

  static Output at(const char* device, Output value) {
    value.node->graph().set_device(*value.node, device);
    return value;
  }
  // A value of one element, so that its size is known.
  static Output negative(GraphBuilder& b, const char* device, Output x, const std::string& name) {
    return at(device, b.op("Neg", {x}, {}, name));
  }
};

TEST_P(SmallReceive, BringsEachValueToItsKey) {
  if (IsSkipped()) return;
  constexpr int kValues = 700;  // more than one request takes
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<std::string> fetches;
  for (int i = 0; i < kValues; ++i) {
    const Output own = b.constant(floats({static_cast<float>(i)}), concat("c", i));
    const Output there = at(kPs, b.op("Add", {x, own}, {}, concat("there", i)));
    negative(b, kWorker, there, concat("here", i));
    fetches.push_back(concat("here", i, ":0"));
  }
  Session session(b.graph, at_worker(b.graph));
  for (int round = 0; round < 6; ++round) {
    const auto fed = static_cast<float>(1000 * round);
    const auto got = session.run({{"x:0", floats({fed})}}, fetches);
    for (int i = 0; i < kValues; ++i)
      ASSERT_EQ(got[static_cast<size_t>(i)].data<float>()[0], -(fed + static_cast<float>(i)));
  }
}

// Each value of one task is made of the one before, which the other task has made.
TEST_P(SmallReceive, DoesNotMakeAValueWaitForAnother) {
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  Output value = x;
  for (int i = 0; i < 20; ++i) {
    value = negative(b, kPs, value, concat("there", i));
    value = negative(b, kWorker, value, concat("here", i));
  }
  Session session(b.graph, at_worker(b.graph));
  for (int round = 0; round < 5; ++round) {
    const auto got = session.run({{"x:0", floats({3})}}, {"here19:0"});
    EXPECT_EQ(got[0].data<float>()[0], 3);
  }
}

TEST_P(SmallReceive, EndsWithTheErrorOfTheOtherTask) {
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<std::string> fetches;
  for (int i = 0; i < 10; ++i) {
    const Output there =
        i == 7 ? at(kPs, b.op("CheckNumerics", {x}, {{"message", std::string("here")}}, "bad"))
               : negative(b, kPs, x, concat("there", i));
    negative(b, kWorker, there, concat("here", i));
    fetches.push_back(concat("here", i, ":0"));
  }
  Session session(b.graph, at_worker(b.graph));
  for (int round = 0; round < 10; ++round) {
    const std::string said = error_of([&] { session.run({{"x:0", floats({NAN})}}, fetches); });
    EXPECT_TRUE(said.starts_with("InvalidArgument: [CheckNumerics node \"bad\"] here")) << said;
    EXPECT_EQ(session.run({{"x:0", floats({2})}}, fetches)[0].data<float>()[0], 2);
  }
}

TEST_P(SmallReceive, EndsWhenItIsCancelled) {
  if (IsSkipped()) return;
  GraphBuilder b;
  const std::vector<DType> types = {DType::kFloat32};
  std::vector<std::string> fetches;
  for (int i = 0; i < 3; ++i) {
    const Output queue =
        at(kPs, b.op("FIFOQueueV2", {},
                     {{"component_types", types},
                      {"shapes", std::vector<PartialShape>{PartialShape(Shape({1}))}}},
                     concat("queue", i)));
    const Output got =
        at(kPs, b.op("QueueDequeueV2", {queue}, {{"component_types", types}}, concat("got", i)));
    b.graph->set_shape(got, PartialShape(Shape({1})));
    negative(b, kWorker, got, concat("here", i));
    fetches.push_back(concat("here", i, ":0"));
  }
  Session session(b.graph, at_worker(b.graph));
  for (int round = 0; round < 3; ++round) {
    RunOptions options;
    options.timeout_ms = 150;
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_TRUE(
        error_of([&] { session.run({}, fetches, {}, options); }).starts_with("DeadlineExceeded: "));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SmallReceive,
                         ::testing::Values(test::Transport::kLent, test::Transport::kGrpc),
                         test::name_of);

TEST(GroupedReceives, AreThoseOfKnownSize) {
  Graph graph;
  const auto receive = [&](const std::string& key, const PartialShape& shape, DType dtype) {
    const NamedAttrs attrs = {
        {"T", dtype}, {"shape", shape}, {"key", key}, {"from", std::string("ps")}};
    graph.add({.op = "_Recv", .name = key, .inputs = {}, .attrs = attrs});
  };
  receive("small", PartialShape(Shape({4096})), DType::kFloat32);
  receive("scalar", PartialShape(Shape()), DType::kBool);
  receive("between", PartialShape(Shape({4097})), DType::kFloat32);
  receive("large", PartialShape(Shape({32'768})), DType::kFloat32);
  receive("larger", PartialShape(Shape({1 << 20})), DType::kInt8);
  receive("flags", PartialShape(Shape({1 << 20})), DType::kBool);
  receive("unknown", PartialShape(), DType::kFloat32);
  receive("text", PartialShape(Shape({1})), DType::kString);
  const GroupedReceives found = grouped_receives(graph);
  using Keys = std::set<std::string, std::less<>>;
  EXPECT_EQ(found.small.keys, (Keys{"scalar", "small"}));
  EXPECT_EQ(found.small.by_task.at("ps"), 2u);
  EXPECT_EQ(found.over_mpi.keys, (Keys{"large", "larger"}));
  EXPECT_EQ(found.over_mpi.by_task.at("ps"), 2u);
}

}  // namespace
}  // namespace treenail
