// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/schedule.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "framework/runtime/plan/plan.h"

namespace treenail {
namespace {

std::vector<PlanNode> nodes(const std::vector<double>& costs_ns) {
  std::vector<PlanNode> result;
  for (const double cost : costs_ns) {
    result.emplace_back().kernel = make_kernel([](RunContext&) {}, cost);
  }
  return result;
}

TEST(Schedule, IndependentNodesTooShortToSplitGoSideBySide) {
  const std::vector<PlanNode> independent = nodes(std::vector<double>(20, 50'000));
  EXPECT_TRUE(faster_side_by_side(independent, 2));
  EXPECT_FALSE(faster_side_by_side(independent, 1));
}

TEST(Schedule, AChainStaysInOrder) {
  std::vector<PlanNode> chain = nodes(std::vector<double>(20, 50'000));
  for (size_t n = 0; n + 1 < chain.size(); ++n)
    chain[n].successors.push_back(static_cast<int32_t>(n + 1));
  EXPECT_FALSE(faster_side_by_side(chain, 2));
}

TEST(Schedule, LargeKernelsAreSplitInstead) {
  EXPECT_FALSE(faster_side_by_side(nodes({10e6, 10e6, 10e6}), 2));
}

TEST(Schedule, SmallRunsStayOnOneThread) {
  EXPECT_FALSE(faster_side_by_side(nodes(std::vector<double>(50, 100)), 8));
}

// A body of one node for each cost, of the arguments `i`, which decides, and `sum`: the last node
// needs both and gives the sum, which alone waits for all of them; i is counted up at no cost.
std::unique_ptr<Plan> body(const std::vector<double>& costs_ns, bool chained) {
  auto made = std::make_unique<Plan>();
  Plan& plan = *made;
  plan.nodes = nodes({0});
  for (PlanNode& node : nodes(costs_ns)) plan.nodes.push_back(std::move(node));
  const auto last = static_cast<int32_t>(plan.nodes.size()) - 1;
  for (int32_t n = 1; n < last; ++n) plan.nodes[static_cast<size_t>(n)].successors.push_back(last);
  Numbers all;
  for (int32_t n = 0; n <= last; ++n) all.push_back(n);
  plan.arg_successors.resize(2);
  plan.arg_successors[0] = all;
  if (chained) {
    plan.arg_successors[1] = all;
  } else {
    plan.arg_successors[1].push_back(last);
  }
  plan.fetch_waits.resize(2);
  plan.fetch_waits[0].push_back(0);
  plan.fetch_waits[1].push_back(last);
  plan.fetch_slots = {0, last};
  for (const PlanNode& node : plan.nodes) plan.cost_ns += node.kernel->cost_ns;
  return made;
}
const IterationLinks kLinks{{0, 1}, {true, false}};

TEST(Schedule, IterationsThatOnlyAddToASumOverlap) {
  const auto made = body({40'000, 40'000, 1'000}, false);
  const Plan& plan = *made;
  EXPECT_TRUE(faster_overlapping(plan, kLinks, 2, 4));
  EXPECT_FALSE(faster_overlapping(plan, kLinks, 1, 4));
}

TEST(Schedule, IterationsThatNeedTheOneBeforeDoNot) {
  EXPECT_FALSE(faster_overlapping(*body({40'000, 1'000}, true), kLinks, 2, 4));
}

TEST(Schedule, IterationsThatAreMostlyTheSumDoNot) {
  EXPECT_FALSE(faster_overlapping(*body({10'000, 80'000}, false), kLinks, 4, 8));
}

TEST(Schedule, LargeKernelsOfAnIterationAreSplitInstead) {
  EXPECT_FALSE(faster_overlapping(*body({10e6, 1'000}, false), kLinks, 2, 4));
}

TEST(Schedule, SmallIterationsStayOnOneThread) {
  EXPECT_FALSE(may_be_faster_overlapping(*body({1'000, 1'000}, false), 8));
}

}  // namespace
}  // namespace treenail
