// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace treenail {
namespace {

// Ground truth by search: whether `earlier` is done before `node` begins.
bool done_before(const std::vector<std::vector<int32_t>>& before, int32_t earlier, int32_t node,
                 bool in_order) {
  if (in_order) return earlier < node;
  std::vector<int32_t> stack(before[static_cast<size_t>(node)]);
  while (!stack.empty()) {
    const int32_t n = stack.back();
    stack.pop_back();
    if (n == earlier) return true;
    const auto& next = before[static_cast<size_t>(n)];
    stack.insert(stack.end(), next.begin(), next.end());
  }
  return false;
}

bool apart(const std::vector<std::vector<int32_t>>& before, const MemoryBlock& a,
           const MemoryBlock& b, bool in_order) {
  return std::all_of(a.users.begin(), a.users.end(),
                     [&](int32_t user) { return done_before(before, user, b.users[0], in_order); });
}

class MemoryPlanTest : public testing::TestWithParam<bool> {};

TEST_P(MemoryPlanTest, BlocksThatMayLiveTogetherNeverOverlap) {
  const bool in_order = GetParam();
  std::mt19937 random(7);
  for (int graph = 0; graph < 30; ++graph) {
    const int nodes = 40;
    std::vector<std::vector<int32_t>> before(nodes);
    std::vector<MemoryBlock> blocks(nodes);
    for (int n = 0; n < nodes; ++n) {
      blocks[static_cast<size_t>(n)].bytes = 1 + static_cast<int64_t>(random() % 1000);
      blocks[static_cast<size_t>(n)].users = {n};
      for (int k = 0; k < 2 && n > 0; ++k) {
        const int32_t source = static_cast<int32_t>(random() % static_cast<unsigned>(n));
        before[static_cast<size_t>(n)].push_back(source);
        blocks[static_cast<size_t>(source)].users.push_back(n);
      }
    }
    const int64_t arena = plan_memory(blocks, before, in_order);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const MemoryBlock& a = blocks[i];
      ASSERT_EQ(a.offset % kArenaAlignment, 0);
      ASSERT_LE(a.offset + a.bytes, arena);
      for (size_t j = 0; j < i; ++j) {
        const MemoryBlock& b = blocks[j];
        const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        if (overlap) {
          ASSERT_TRUE(apart(before, a, b, in_order) || apart(before, b, a, in_order))
              << i << " " << j;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, MemoryPlanTest, testing::Bool());

TEST(MemoryPlan, AChainNeedsTwoBlocks) {
  std::vector<std::vector<int32_t>> before(100);
  std::vector<MemoryBlock> blocks(100);
  for (int32_t n = 0; n < 100; ++n) {
    blocks[static_cast<size_t>(n)] = {4096, {n}};
    if (n > 0) before[static_cast<size_t>(n)] = {n - 1};
    if (n + 1 < 100) blocks[static_cast<size_t>(n)].users.push_back(n + 1);
  }
  EXPECT_EQ(plan_memory(blocks, before, false), 2 * 4096);
  EXPECT_EQ(plan_memory(blocks, before, true), 2 * 4096);
}

TEST(MemoryPlan, IndependentBranchesShareOnlyInOrder) {
  // Two nodes without edges: side by side both live at once.
  std::vector<MemoryBlock> blocks = {{64, {0}}, {64, {1}}};
  const std::vector<std::vector<int32_t>> before(2);
  EXPECT_EQ(plan_memory(blocks, before, true), 64);
  EXPECT_EQ(plan_memory(blocks, before, false), 128);
}

}  // namespace
}  // namespace treenail
