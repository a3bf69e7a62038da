// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "framework/runtime/plan/ancestors.h"

namespace treenail {
namespace {

// Ground truth by search: whether `earlier` is done before `node` begins.
bool done_before(const std::vector<Numbers>& before, int32_t earlier, int32_t node, bool in_order) {
  if (in_order) return earlier < node;
  const Numbers& first = before[static_cast<size_t>(node)];
  std::vector<int32_t> stack(first.begin(), first.end());
  std::vector<bool> seen(before.size());
  while (!stack.empty()) {
    const int32_t n = stack.back();
    stack.pop_back();
    if (n == earlier) return true;
    if (n < earlier || seen[static_cast<size_t>(n)]) continue;
    seen[static_cast<size_t>(n)] = true;
    const auto& next = before[static_cast<size_t>(n)];
    stack.insert(stack.end(), next.begin(), next.end());
  }
  return false;
}

bool apart(const std::vector<Numbers>& before, const MemoryBlock& a, const MemoryBlock& b,
           bool in_order) {
  return std::all_of(a.users.begin(), a.users.end(),
                     [&](int32_t user) { return done_before(before, user, b.users[0], in_order); });
}

class MemoryPlanTest : public ::testing::TestWithParam<bool> {};

TEST_P(MemoryPlanTest, BlocksThatMayLiveTogetherNeverOverlap) {
  const bool in_order = GetParam();
  std::mt19937 random(7);
  for (int graph = 0; graph < 30; ++graph) {
    const int nodes = 40;
    std::vector<Numbers> before(nodes);
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

INSTANTIATE_TEST_SUITE_P(Orders, MemoryPlanTest, ::testing::Bool());

// What is asked page by page is what a search through all blocks gives.
TEST_P(MemoryPlanTest, EachBlockLiesAtTheLowestOffsetThatIsFree) {
  const bool in_order = GetParam();
  std::mt19937 random(3);
  const size_t nodes = 500;
  std::vector<Numbers> before(nodes);
  std::vector<MemoryBlock> blocks(nodes);
  for (size_t n = 0; n < nodes; ++n) {
    blocks[n].bytes = kArenaAlignment * static_cast<int64_t>(1 + random() % 4);
    blocks[n].users = {static_cast<int32_t>(n)};
    if (n == 0) continue;
    const size_t source = random() % 3 == 0 ? random() % n : n - 1;
    before[n].push_back(static_cast<int32_t>(source));
    blocks[source].users.push_back(static_cast<int32_t>(n));
  }
  plan_memory(blocks, before, in_order);
  std::vector<size_t> by_size(nodes), placed;
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  for (const size_t i : by_size) {
    const MemoryBlock& block = blocks[i];
    const auto free_at = [&](int64_t offset) {
      return std::ranges::all_of(placed, [&](size_t other) {
        const MemoryBlock& o = blocks[other];
        return o.offset + o.bytes <= offset || offset + block.bytes <= o.offset ||
               apart(before, o, block, in_order) || apart(before, block, o, in_order);
      });
    };
    int64_t lowest = 0;
    while (!free_at(lowest)) lowest += kArenaAlignment;
    ASSERT_EQ(block.offset, lowest) << i;
    placed.push_back(i);
  }
}

TEST(MemoryPlan, AChainNeedsTwoBlocks) {
  std::vector<Numbers> before(100);
  std::vector<MemoryBlock> blocks(100);
  for (int32_t n = 0; n < 100; ++n) {
    blocks[static_cast<size_t>(n)] = {4096, {n}};
    if (n > 0) before[static_cast<size_t>(n)].push_back(n - 1);
    if (n + 1 < 100) blocks[static_cast<size_t>(n)].users.push_back(n + 1);
  }
  EXPECT_EQ(plan_memory(blocks, before, false), 2 * 4096);
  EXPECT_EQ(plan_memory(blocks, before, true), 2 * 4096);
}

TEST(MemoryPlan, IndependentBranchesShareOnlyInOrder) {
  // Two nodes without edges: side by side both live at once.
  std::vector<MemoryBlock> blocks = {{64, {0}}, {64, {1}}};
  const std::vector<Numbers> before(2);
  EXPECT_EQ(plan_memory(blocks, before, true), 64);
  EXPECT_EQ(plan_memory(blocks, before, false), 128);
}

// `count` blocks of 256 bytes; each node reads the one before in its branch.
std::vector<MemoryBlock> branches(size_t count, size_t branch, std::vector<Numbers>& before) {
  std::vector<MemoryBlock> blocks(count);
  before.assign(count, {});
  for (size_t n = 0; n < count; ++n) {
    blocks[n].bytes = 256;
    blocks[n].users = {static_cast<int32_t>(n)};
    if (n % branch == 0) continue;
    before[n].push_back(static_cast<int32_t>(n - 1));
    blocks[n - 1].users.push_back(static_cast<int32_t>(n));
  }
  return blocks;
}

// Beyond what is laid out exactly the values of a chain still take turns.
TEST_P(MemoryPlanTest, AVeryLongChainNeedsFewBlocks) {
  std::vector<Numbers> before;
  std::vector<MemoryBlock> blocks = branches(50'000, 50'000, before);
  EXPECT_LE(plan_memory(blocks, before, GetParam()), 5 * 256);
}

// Side by side each of two towers has memory of its own, and of very many small branches each.
TEST_P(MemoryPlanTest, VeryManyBranchesShareWithinABranch) {
  const bool in_order = GetParam();
  for (const size_t branch : {size_t{20'000}, size_t{10}}) {
    std::vector<Numbers> before;
    std::vector<MemoryBlock> blocks = branches(40'000, branch, before);
    const auto width = static_cast<int64_t>(in_order ? 1 : 40'000 / branch);
    EXPECT_LE(plan_memory(blocks, before, in_order), 5 * 256 * width) << branch;
  }
}

TEST_P(MemoryPlanTest, BlocksOfAVeryLargePlanNeverOverlapWhileAlive) {
  const bool in_order = GetParam();
  std::mt19937 random(11);
  const size_t nodes = 12'000;
  std::vector<Numbers> before(nodes);
  std::vector<MemoryBlock> blocks(nodes);
  for (size_t n = 0; n < nodes; ++n) {
    blocks[n].bytes = 1 + static_cast<int64_t>(random() % 5000);
    blocks[n].users = {static_cast<int32_t>(n)};
    for (int k = 0; k < 2 && n > 0; ++k) {
      const size_t source = n - 1 - random() % std::min<size_t>(n, 20);
      before[n].push_back(static_cast<int32_t>(source));
      blocks[source].users.push_back(static_cast<int32_t>(n));
    }
  }
  const int64_t arena = plan_memory(blocks, before, in_order);
  if (in_order) {  // side by side what nobody waits for stays
    EXPECT_LT(arena, 5000 * 200);
  }
  std::vector<size_t> by_offset(nodes);
  std::iota(by_offset.begin(), by_offset.end(), size_t{0});
  std::sort(by_offset.begin(), by_offset.end(),
            [&](size_t a, size_t b) { return blocks[a].offset < blocks[b].offset; });
  for (size_t k = 0; k < nodes; k += 1000) {
    const MemoryBlock& a = blocks[by_offset[k]];
    for (size_t l = k + 1; l < nodes; ++l) {
      const MemoryBlock& b = blocks[by_offset[l]];
      if (b.offset >= a.offset + a.bytes) break;
      if (l % 7 != 0) continue;  // the search is slow
      ASSERT_TRUE(apart(before, a, b, in_order) || apart(before, b, a, in_order));
    }
  }
}

// Memory of the relation grows with the plan, not with its square, and what it says is true.
TEST(Ancestors, TakeLinearMemoryAndNeverSayTooMuch) {
  std::mt19937 random(5);
  size_t bytes_a_node = 0;
  for (const size_t nodes : {size_t{10'000}, size_t{20'000}, size_t{40'000}}) {
    std::vector<Numbers> before(nodes);
    for (size_t n = 1; n < nodes; ++n) {
      if (n % 7 == 0) continue;
      before[n].push_back(static_cast<int32_t>(n - 1 - random() % std::min<size_t>(n, 5)));
    }
    const Ancestors ancestors(before);
    if (bytes_a_node == 0) bytes_a_node = ancestors.bytes() / nodes;
    EXPECT_LE(ancestors.bytes() / nodes, bytes_a_node);
    EXPECT_LT(bytes_a_node, 1024U);
    for (int trial = 0; trial < 200; ++trial) {
      const auto node = static_cast<int32_t>(random() % nodes);
      const auto earlier = static_cast<int32_t>(random() % nodes);
      if (ancestors.has(node, earlier)) {
        EXPECT_TRUE(done_before(before, earlier, node, false));
      }
    }
  }
}

TEST(Ancestors, KnowFarOnesOfALongChainAndBesideIt) {
  // A trunk of 20,000 nodes, and beside every tenth a node that the next of the trunk waits for.
  std::vector<Numbers> before;
  int32_t trunk = -1;
  std::vector<int32_t> beside;
  for (int n = 0; n < 20'000; ++n) {
    Numbers waits;
    if (trunk >= 0) waits.push_back(trunk);
    if (n % 10 == 0 && trunk >= 0) {
      beside.push_back(static_cast<int32_t>(before.size()));
      waits.push_back(beside.back());
      before.emplace_back().push_back(trunk);
    }
    trunk = static_cast<int32_t>(before.size());
    before.push_back(waits);
  }
  const Ancestors ancestors(before);
  EXPECT_TRUE(ancestors.has(trunk, 0));
  EXPECT_FALSE(ancestors.has(0, trunk));
  for (const int32_t b : beside) ASSERT_TRUE(ancestors.has(trunk, b)) << b;
}

}  // namespace
}  // namespace treenail
