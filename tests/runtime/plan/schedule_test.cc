// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/schedule.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace treenail
