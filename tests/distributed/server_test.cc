// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/client.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;
using testing::error_of;

constexpr const char* kPs = "/job:ps/task:0";
constexpr const char* kWorker[] = {"/job:worker/task:0", "/job:worker/task:1"};

Output at(const char* device, Output value) {
  value.node->graph().set_device(*value.node, device);
  return value;
}

float first(const std::vector<Tensor>& values) { return values.at(0).data<float>()[0]; }

class Servers : public test::InProcessCluster {
 protected:
  // y = (x + 1) at the parameter server, doubled at one worker, summed with itself at the other.
  GraphBuilder across() {
    GraphBuilder b;
    const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
    const Output more =
        at(kPs, b.op("Add", {x, b.constant(Tensor::scalar(1.0f), "one")}, {}, "more"));
    const Output twice = at(kWorker[0], b.op("Add", {more, more}, {}, "twice"));
    at(kWorker[1], b.op("Add", {twice, more}, {}, "y"));
    return b;
  }
};

TEST_P(Servers, RunAGraphThatLiesAcrossThem) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b = across();
  Session session(b.graph, at_worker(b.graph));
  EXPECT_EQ(session.devices().size(), 3u);
  for (int round = 0; round < 20; ++round) {
    const auto x = static_cast<float>(round);
    const auto got = session.run({{"x:0", floats({x, 2})}}, {"y:0", "more:0"});
    EXPECT_EQ(got[0].data<float>()[0], 3 * (x + 1));
    EXPECT_EQ(got[1].data<float>()[1], 3);
  }
  // A fetched feed, a feed that nothing needs, a target.
  const auto got = session.run({{"x:0", floats({5})}, {"twice:0", floats({7})}}, {"x:0"}, {"more"});
  EXPECT_EQ(first(got), 5);
}

TEST_P(Servers, KeepVariablesBeyondASession) {
  begin(1);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output v = at(kPs, b.variable(DType::kFloat32, {2}, "v"));
  b.node("AssignVariableOp", {v, b.constant(floats({1, 2}), "init")}, {}, "assign");
  b.node("AssignAddVariableOp", {v, b.constant(floats({1, 1}), "step")}, {}, "add");
  b.read(v, DType::kFloat32, "read");
  {
    Session session(b.graph, at_worker(b.graph));
    EXPECT_NE(error_of([&] { session.run({}, {"read:0"}); }).find("FailedPrecondition: [Read"),
              std::string::npos);
    session.run({}, {}, {"assign"});
    session.run({}, {}, {"add"});
  }
  Session another(b.graph, at_worker(b.graph));
  EXPECT_EQ(first(another.run({}, {"read:0"})), 2);
  reset_cluster(servers[1]->target(), {});
  EXPECT_NE(error_of([&] { another.run({}, {"read:0"}); }).find("Aborted: "), std::string::npos);
  Session third(b.graph, at_worker(b.graph));
  EXPECT_NE(error_of([&] { third.run({}, {"read:0"}); }).find("FailedPrecondition: [Read"),
            std::string::npos);
}

TEST_P(Servers, OrderNodesOfDifferentTasks) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output v = at(kPs, b.variable(DType::kFloat32, {}, "v"));
  Node& assign =
      b.node("AssignVariableOp", {v, b.constant(Tensor::scalar(4.0f), "four")}, {}, "assign");
  const Output nothing = at(kWorker[1], {&b.node("NoOp", {}, {}, "after", {&assign}), 0});
  const Output read =
      b.op("ReadVariableOp", {v}, {{"dtype", DType::kFloat32}}, "read", {nothing.node});
  at(kWorker[0], b.op("Neg", {read}, {}, "y"));
  Session session(b.graph, at_worker(b.graph));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first(session.run({}, {"y:0"})), -4);
}

// A constant stands wherever it is read, whatever it asks for.
TEST_P(Servers, ReadAConstantOfAnotherTask) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output two = at(kWorker[1], b.constant(Tensor::scalar(2.0f), "two"));
  at(kPs, b.op("Neg", {two}, {}, "there"));
  at(kWorker[1], b.op("Neg", {two}, {}, "here"));
  Session session(b.graph, at_worker(b.graph));
  EXPECT_EQ(first(session.run({}, {"there:0", "here:0", "two:0"})), -2);
}

TEST_P(Servers, SendEveryKindOfValue) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const std::vector<DType> types = {
      DType::kFloat32, DType::kFloat64,  DType::kInt8,      DType::kInt16,     DType::kInt32,
      DType::kInt64,   DType::kUInt8,    DType::kUInt16,    DType::kBool,      DType::kString,
      DType::kFloat16, DType::kBFloat16, DType::kComplex64, DType::kComplex128};
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  for (const DType type : types) {
    const std::string name(dtype_name(type));
    const Output x = b.placeholder(type, {}, name);
    const Output there = at(kPs, b.op("Identity", {x}, {}, "there_" + name));
    at(kWorker[1], b.op("Identity", {there}, {}, "back_" + name));
    Tensor value(type, Shape({3}));
    if (is_plain(type)) std::memset(value.raw(), 1, value.bytes());
    feeds.emplace_back(name + ":0", value);
    fetches.push_back("back_" + name + ":0");
  }
  for (auto& [name, tensor] : feeds) b.graph->set_shape(b.graph->find_output(name), {});
  Session session(b.graph, at_worker(b.graph));
  const auto got = session.run(feeds, fetches);
  for (size_t i = 0; i < types.size(); ++i) {
    ASSERT_EQ(got[i].dtype(), types[i]);
    EXPECT_EQ(got[i].shape(), Shape({3}));
    if (is_plain(types[i])) {
      EXPECT_EQ(std::memcmp(got[i].raw(), feeds[i].second.raw(), got[i].bytes()), 0);
    }
  }
}

TEST_P(Servers, ReportTheErrorThatOthersFollowFrom) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output bad = at(kPs, b.op("CheckNumerics", {x}, {{"message", std::string("here")}}, "bad"));
  at(kWorker[1], b.op("Neg", {bad}, {}, "y"));
  Session session(b.graph, at_worker(b.graph));
  for (int i = 0; i < 20; ++i) {
    const std::string said = error_of([&] { session.run({{"x:0", floats({1, NAN})}}, {"y:0"}); });
    EXPECT_TRUE(said.starts_with("InvalidArgument: [CheckNumerics node \"bad\"] here")) << said;
  }
  EXPECT_EQ(first(session.run({{"x:0", floats({1})}}, {"y:0"})), -1);
}

TEST_P(Servers, RunSeveralStepsAtOnce) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b = across();
  Session session(b.graph, at_worker(b.graph));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const auto x = static_cast<float>(100 * t + i);
        if (first(session.run({{"x:0", floats({x})}}, {"y:0"})) == 3 * (x + 1)) right.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 100);
}

TEST_P(Servers, EndARunThatNobodyWaitsFor) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output queue = at(
      kPs,
      b.op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat32}}}, "queue"));
  const Output got = b.op("QueueDequeueV2", {queue},
                          {{"component_types", std::vector<DType>{DType::kFloat32}}}, "got");
  at(kWorker[1], b.op("Neg", {got}, {}, "y"));
  Session session(b.graph, at_worker(b.graph));
  RunOptions options;
  options.timeout_ms = 200;
  EXPECT_TRUE(
      error_of([&] { session.run({}, {"y:0"}, {}, options); }).starts_with("DeadlineExceeded: "));
  CancellationToken token;
  options = {};
  options.token = &token;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    token.cancel(Code::kCancelled, "enough");
  });
  EXPECT_EQ(error_of([&] { session.run({}, {"y:0"}, {}, options); }), "Cancelled: enough");
  canceller.join();
}

TEST_P(Servers, NameTheTaskThatIsLost) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b = across();
  Session session(b.graph, at_worker(b.graph));
  session.run({{"x:0", floats({1})}}, {"y:0"});
  servers[2].reset();
  const std::string lost = error_of([&] { session.run({{"x:0", floats({1})}}, {"y:0"}); });
  EXPECT_TRUE(lost.starts_with("Unavailable: ")) << lost;
  EXPECT_NE(lost.find("the task /job:worker/replica:0/task:1 (localhost:"), std::string::npos)
      << lost;
  servers[2] = server({"worker", 1});
  std::string said;
  for (int i = 0; i < 100 && !said.starts_with("Aborted"); ++i) {
    said = error_of([&] { session.run({{"x:0", floats({1})}}, {"y:0"}); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(said.starts_with("Aborted: /job:worker/replica:0/task:1 was restarted")) << said;
  Session fresh(b.graph, at_worker(b.graph));
  EXPECT_EQ(first(fresh.run({{"x:0", floats({1})}}, {"y:0"})), 6);
}

TEST_P(Servers, FollowAGraphThatGrowsAndChanges) {
  begin(2);
  if (IsSkipped()) return;
  GraphBuilder b = across();
  Session session(b.graph, at_worker(b.graph));
  EXPECT_EQ(first(session.run({{"x:0", floats({1})}}, {"y:0"})), 6);
  at(kPs, b.op("Neg", {b.graph->find_output("y:0")}, {}, "z"));
  EXPECT_EQ(first(session.run({{"x:0", floats({1})}}, {"z:0"})), -6);
  b.graph->set_input(*b.graph->find("z"), 0, b.graph->find_output("twice:0"));
  EXPECT_EQ(first(session.run({{"x:0", floats({1})}}, {"z:0"})), -4);
  session.close();
  EXPECT_EQ(error_of([&] {
              session.run({{"x:0", floats({1})}}, {"z:0"});
            }),
            "FailedPrecondition: the session is closed");
}

TEST(Server, SaysWhatItCannotBe) {
  const auto serve = [](const std::string& address, bool plain_text, int task = 0) {
    return error_of([&] {
      ServerOptions options;
      options.cluster.add({"w", 0}, address);
      options.task = {"w", task};
      options.plain_text = plain_text;
      Server server(options);
    });
  };
  EXPECT_TRUE(
      serve("0.0.0.0:0", false).starts_with("PermissionDenied: refuses to listen on 0.0.0.0:0: "));
  // A name that begins like an address of this machine is none.
  EXPECT_TRUE(serve("127.example.com:0", false)
                  .starts_with("PermissionDenied: refuses to listen on 127.example.com:0: "));
  EXPECT_EQ(serve("localhost:0", false, 1),
            "NotFound: the cluster has no /job:w/replica:0/task:1; it has "
            "/job:w/replica:0/task:0");
  const std::string there = serve("0.0.0.0:0", true);
  if (there.starts_with("Unimplemented")) GTEST_SKIP() << there;
  EXPECT_EQ(there, "no error");
  ServerOptions taken;
  taken.cluster.add({"w", 0}, "localhost:0");
  taken.task = {"w", 0};
  const Server server(taken);
  const std::string said = serve("localhost:" + std::to_string(server.port()), false);
  EXPECT_TRUE(said.starts_with("Unavailable: cannot listen on localhost:")) << said;
}

TEST(ClientSession, SaysWhatIsNoTarget) {
  GraphBuilder b;
  for (const char* target : {"localhost:1", "grpc://host", "http://host:1"}) {
    EXPECT_EQ(error_of([&] { open_remote_session(target, b.graph, {}); }),
              concat("InvalidArgument: a session's target is \"\" (this process) or "
                     "\"grpc://host:port\", not \"",
                     target, "\""));
  }
}

INSTANTIATE_TEST_SUITE_P(By, Servers,
                         ::testing::Values(test::Transport::kLent, test::Transport::kGrpc,
                                           test::Transport::kMemory),
                         test::name_of);

}  // namespace
}  // namespace treenail
