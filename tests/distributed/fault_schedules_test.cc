// SPDX-License-Identifier: Apache-2.0
// Runs across servers, placed by hand and by cost, while messages are late and connections are lost
// by chance: each has the result of one process, or fails with what names the task. Training under
// such schedules: tests/python/fault_schedules.py. ThreadSanitizer watches these.
//
// TREENAIL_FAULT_SEEDS=200 asks for more than 6 schedules, TREENAIL_FAULT_SEED=17 for those
// from 17.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/protocol.h"
#include "framework/placement/cost_placer.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/graph_builder.h"
#include "tests/transport/random_fates.h"

namespace treenail {
namespace {

using test::GraphBuilder;
using test::RandomFates;

uint64_t number(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Computing is dear there and sending cheap, so that graphs are spread over all tasks.
std::shared_ptr<const CostModel> spreading() {
  auto model = std::make_shared<CostModel>();
  model->devices.push_back({parse_device_name("/device:CPU:*"), {1e3, 1e3, 1e-2}});
  model->links.push_back({{}, {}, 1e-9, 1e15});
  return model;
}

constexpr std::array kTasks = {"/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"};

// Sums and differences of small whole numbers, so that any order gives the same bits.
struct RandomGraph {
  GraphBuilder builder;
  std::vector<std::string> fetches;

  RandomGraph(std::mt19937_64& random, bool devices) {
    std::vector<Output> values{builder.placeholder(DType::kFloat32, {kUnknown}, "x")};
    for (int i = 0; i < 12; ++i) {
      const Output& left = values[random() % values.size()];
      const Output& right = values[random() % values.size()];
      const char* const op = random() % 2 == 0 ? "Add" : "Sub";
      const Output made = builder.op(op, {left, right}, {}, "n" + std::to_string(i));
      const char* const task = kTasks[random() % kTasks.size()];
      if (devices) builder.graph->set_device(*made.node, task);
      values.push_back(made);
    }
    for (int i = 0; i < 3; ++i) fetches.push_back("n" + std::to_string(random() % 12) + ":0");
  }
};

class FaultSchedules : public test::InProcessCluster {
 protected:
  void TearDown() override {
    InProcessCluster::TearDown();
    test::memory_transport().set_fates(nullptr);
  }
  // Before they go: what nobody waits for may be under way.
  static void forget_fates() {
    EXPECT_TRUE(test::memory_transport().settle());
    test::memory_transport().set_fates(nullptr);
  }
  static bool is_allowed(const Error& error) {
    const std::string_view text = error.message();
    const bool lost = error.code() == Code::kUnavailable || error.code() == Code::kAborted ||
                      error.code() == Code::kDeadlineExceeded;
    return lost && (text.find("/job:") != std::string_view::npos ||
                    text.find("the server localhost:") != std::string_view::npos);
  }
  // A session at a server, when it can be had.
  SessionOptions opened(const std::shared_ptr<Graph>& graph, bool by_cost) const {
    for (int tries = 0;; ++tries) {
      try {
        SessionOptions options;
        if (by_cost) options.placement = spreading();
        const ClientOptions client{{}, patience_of(20)};
        options.remote = open_remote_session(servers[1]->target(), graph, options, client);
        return options;
      } catch (const Error& error) {
        EXPECT_TRUE(is_allowed(error)) << error.what();
        if (tries > 20) throw;
      }
    }
  }
  // Whether the run was made; it has the right values then.
  static bool run(Session& session, const RandomGraph& graph, const Tensor& x,
                  const std::vector<Tensor>& expected) {
    try {
      RunOptions options;
      options.timeout_ms = 20'000;
      const auto found = session.run({{"x:0", x}}, graph.fetches, {}, options);
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(found[i].data<float>()[0], expected[i].data<float>()[0]);
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(is_allowed(error)) << error.what();
      return false;
    }
  }
  void one_schedule(uint64_t seed) {
    std::mt19937_64 random(seed), again(seed);
    const bool by_cost = seed % 2 == 1;
    const RandomGraph local(again, false), graph(random, !by_cost);
    const Tensor x = test::floats({static_cast<float>(seed % 100), 2});
    Session here(local.builder.graph);
    const std::vector<Tensor> expected = here.run({{"x:0", x}}, local.fetches);
    Session session(graph.builder.graph, opened(graph.builder.graph, by_cost));
    std::atomic<int> made{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 6; ++i) made += run(session, graph, x, expected) ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    told_ += made;
  }

  int told_ = 0;
};

TEST_P(FaultSchedules, GiveTheRightValuesOrNameTheTask) {
  patience = patience_of(20);
  begin(2);
  const uint64_t first = number("TREENAIL_FAULT_SEED", 0);
  const uint64_t count = number("TREENAIL_FAULT_SEEDS", 6);
  std::vector<std::unique_ptr<RandomFates>> fates;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    fates.push_back(std::make_unique<RandomFates>(
        RandomFates::Chances{seed, 100, 30, seed % 3 == 0 ? 0 : 8, 400}));
    test::memory_transport().set_fates(fates.back().get());
    one_schedule(seed);
    ASSERT_TRUE(test::memory_transport().settle());
    if (HasFailure()) break;
  }
  EXPECT_GE(told_, static_cast<int>(count) * 6);
  forget_fates();
}

// Cuts the connection at the first messages to a method.
class CutFirst final : public test::Fates {
 public:
  CutFirst(const char* path, int count) : path_(path), left_(count) {}
  Fate of(const Passing& passing) override {
    if (path_ != passing.path || passing.reply || left_.fetch_sub(1) <= 0) return {};
    return {Fate::Kind::kCut, {}};
  }
  int left() const { return left_; }

 private:
  const std::string path_;
  std::atomic<int> left_;
};

TEST_P(FaultSchedules, RepeatWhatMayBeRepeated) {
  begin(1);
  GraphBuilder b;
  const Output two = b.constant(Tensor::scalar(2.0f), "two");
  const Output there = b.op("Neg", {two}, {}, "there");
  b.graph->set_device(*there.node, kTasks[0]);
  for (const char* path : {protocol::worker::kGetStatus, protocol::master::kOpenSession,
                           protocol::master::kMakePlan, protocol::worker::kRegisterPiece}) {
    CutFirst fates(path, 3);
    test::memory_transport().set_fates(&fates);
    {
      Session session(b.graph, at_worker(b.graph));
      EXPECT_EQ(session.run({}, {"there:0"})[0].data<float>()[0], -2) << path;
    }
    EXPECT_LE(fates.left(), 0) << path;
    forget_fates();
  }
}

// A run may have done something before its answer was lost.
TEST_P(FaultSchedules, NeverRepeatARun) {
  begin(1);
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {}, "v");
  b.graph->set_device(*v.node, kTasks[0]);
  const Output one = b.constant(Tensor::scalar(1.0f), "one");
  b.node("AssignVariableOp", {v, one}, {}, "assign");
  b.node("AssignAddVariableOp", {v, one}, {}, "add");
  b.read(v, DType::kFloat32, "read");
  Session session(b.graph, at_worker(b.graph));
  session.run({}, {}, {"assign"});
  for (const char* path : {protocol::master::kRun, protocol::worker::kRunPiece}) {
    CutFirst fates(path, 1);
    test::memory_transport().set_fates(&fates);
    EXPECT_THROW(session.run({}, {}, {"add"}), Error) << path;
    EXPECT_EQ(session.run({}, {"read:0"})[0].data<float>()[0], 1) << path;
    forget_fates();
  }
}

INSTANTIATE_TEST_SUITE_P(By, FaultSchedules, ::testing::Values(test::Transport::kMemory),
                         test::name_of);

}  // namespace
}  // namespace treenail
