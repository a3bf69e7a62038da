// SPDX-License-Identifier: Apache-2.0
// Training in steady state asks the system for nothing: no malloc, new, mmap or thread in steps 10
// to 20, on any thread. Every test runs itself again in a process with the counter preloaded, for
// malloc is there before a test is.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "framework/base/thread_pool.h"
#include "framework/runtime/plan/plan.h"
#include "framework/runtime/plan/topology.h"
#include "framework/runtime/run/session.h"
#include "tests/steady/counted.h"
#include "tests/steady/networks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TREENAIL_OTHER_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TREENAIL_OTHER_MALLOC 1
#endif
#endif

namespace treenail {
namespace {

using test::Counted;

class Steady : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  void SetUp() override {
#ifdef TREENAIL_OTHER_MALLOC
    GTEST_SKIP() << "a sanitizer has put its own malloc in place";
#endif
  }
};

struct Trained {
  float first_loss = 0, last_loss = 0;
  size_t calls = 0;
  std::string report;
};

// 20 steps; `during` runs in step 15.
template <class F>
Trained train(const char* name, int threads, F&& during) {
  ThreadPool::instance().set_num_threads(threads);
  test::Network network = test::make_network(name);
  Session session(network.builder.graph);
  session.run(session.signature({}, {}, network.initializers), {});
  std::vector<Output> fed;
  std::vector<Tensor> values;
  for (const auto& [output, value] : network.feeds) {
    fed.push_back(output);
    values.push_back(value);
  }
  const auto loss = session.signature(fed, std::vector{network.loss}, {});
  const auto step = session.signature(fed, {}, network.updates);
  Trained trained;
  trained.first_loss = *session.run(loss, values)[0].data<float>();
  for (int i = 1; i < 10; ++i) session.run(step, values);
  {
    Counted counted;
    for (int i = 10; i <= 20; ++i) {
      session.run(step, values);
      if (i == 15) during();
    }
    trained.calls = counted.stop();
  }
  trained.report = Counted::report();
  trained.last_loss = *session.run(loss, values)[0].data<float>();
  return trained;
}

// Whether a plan for that many threads runs nodes side by side.
bool side_by_side(const char* name, int threads) {
  ThreadPool::instance().set_num_threads(threads);
  test::Network network = test::make_network(name);
  const Session session(network.builder.graph);
  std::vector<Output> fed;
  std::vector<PartialShape> shapes;
  for (const auto& [output, value] : network.feeds) {
    fed.push_back(output);
    shapes.push_back(value.shape());
  }
  const auto topology =
      make_topology(*network.builder.graph, fed, {}, network.updates, session.resources(), {});
  return make_plan(topology, shapes, session.resources())->side_by_side;
}

TEST(SteadyNetworks, TowersStandForPlansWithNodesSideBySide) {
  EXPECT_TRUE(side_by_side("towers", 2));
  EXPECT_FALSE(side_by_side("towers", 1));
}

TEST_P(Steady, TrainingStepsAllocateNothing) {
  if (!test::counting_possible()) {
    EXPECT_EQ(test::run_preloaded(), "");
    return;
  }
  const auto [name, threads] = GetParam();
  const Trained trained = train(name, threads, [] {});
  EXPECT_EQ(trained.calls, 0u) << trained.report;
  EXPECT_LT(trained.last_loss, trained.first_loss) << "nothing was trained";
}

std::string parameter_name(const ::testing::TestParamInfo<std::tuple<const char*, int>>& info) {
  return std::string(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Networks, Steady,
                         ::testing::Combine(::testing::Values("mlp", "lenet", "lstm", "cells",
                                                              "towers"),
                                            ::testing::Values(1, 2)),
                         parameter_name);

using SteadyControl = Steady;

// The compiler may leave out a block that nobody sees.
void* kept(void* block) {
  __asm__ volatile("" : "+r"(block) : : "memory");
  return block;
}

// The counter sees what a step would have to do to fail.
TEST_P(SteadyControl, AnAllocationInAStepIsCounted) {
  if (!test::counting_possible()) {
    EXPECT_EQ(test::run_preloaded(), "");
    return;
  }
  const auto [what, calls] = GetParam();
  const Trained trained = train("mlp", 1, [what = std::string_view(what)] {
    if (what == "malloc") std::free(kept(std::malloc(10)));
    if (what == "new") delete static_cast<char*>(kept(new char));
    if (what == "aligned_alloc") std::free(kept(std::aligned_alloc(64, 64)));
    if (what == "mmap")
      ::munmap(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
  });
  EXPECT_EQ(trained.calls, static_cast<size_t>(calls)) << trained.report;
  EXPECT_EQ(trained.report.substr(0, std::string(what).size()), what);
  EXPECT_NE(trained.report.find("steady_test"), std::string::npos) << trained.report;
}

INSTANTIATE_TEST_SUITE_P(Ways, SteadyControl,
                         ::testing::Values(std::tuple("malloc", 2), std::tuple("new", 2),
                                           std::tuple("aligned_alloc", 2), std::tuple("mmap", 2)),
                         [](const auto& info) { return std::string(std::get<0>(info.param)); });

}  // namespace
}  // namespace treenail
