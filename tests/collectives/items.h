// SPDX-License-Identifier: Apache-2.0
// Executions of every kind, small and large, and a plain second implementation of what they give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/collectives/waited.h"

namespace treenail::test {

// Of item i on a rank: [rows, 3] or so; kAllGather has other rows on each rank.
inline Tensor item(int i, int rank, int ranks) {
  const int64_t rows = i % 6 == 2 ? rank + i % 3 : ranks * (i % 11 == 5 ? 4001 : i % 5);
  Tensor value(DType::kFloat32, Shape({rows, 3}));
  for (int64_t j = 0; j < value.num_elements(); ++j)
    value.data<float>()[j] = 1.0F / static_cast<float>(1 + (j + i) % 89 + rank * 17);
  return value;
}

inline std::vector<float> wanted(int i, int rank, int ranks) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < ranks; ++r) {
    const Tensor value = item(i, r, ranks);
    all.emplace_back(value.values<float>().begin(), value.values<float>().end());
  }
  std::vector<float> sum = all[0], joined, parts;
  for (int r = 1; r < ranks && i % 6 != 2; ++r) {
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += all[static_cast<size_t>(r)][j];
  }
  const size_t part = sum.size() / static_cast<size_t>(ranks),
               at = part * static_cast<size_t>(rank);
  for (const std::vector<float>& one : all) {
    joined.insert(joined.end(), one.begin(), one.end());
    if (i % 6 == 4) parts.insert(parts.end(), one.begin() + at, one.begin() + at + part);
  }
  switch (static_cast<CollectiveKind>(i % 6)) {
    case CollectiveKind::kAllReduce:
      return sum;
    case CollectiveKind::kBroadcast:
      return all[static_cast<size_t>(i % ranks)];
    case CollectiveKind::kAllGather:
      return joined;
    case CollectiveKind::kReduceScatter:
      return {sum.begin() + at, sum.begin() + at + part};
    case CollectiveKind::kAllToAll:
      return parts;
    case CollectiveKind::kBarrier:
      break;
  }
  return {};
}

inline IntrusivePtr<Waited> submit(Communicator& group, int i) {
  auto wanted = make_counted<Waited>();
  wanted->kind = static_cast<CollectiveKind>(i % 6);
  wanted->dtype = DType::kFloat32;
  wanted->root = wanted->kind == CollectiveKind::kBroadcast ? i % group.size() : 0;
  wanted->key = "item" + std::to_string(i);
  if (wanted->kind != CollectiveKind::kBarrier)
    wanted->inputs.push_back(item(i, group.rank(), group.size()));
  group.submit(wanted);
  return wanted;
}

// All of them, begun in an order of each rank's own.
inline void run_items(Communicator& group, int count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(group.rank())));
  std::vector<IntrusivePtr<Waited>> waited(order.size());
  for (const int i : order) waited[static_cast<size_t>(i)] = submit(group, i);
  for (int i = 0; i < count; ++i) {
    const Tensor& got = waited[static_cast<size_t>(i)]->wait();
    const std::vector<float> right = wanted(i, group.rank(), group.size());
    if (i % 6 == 5) continue;
    ASSERT_EQ(std::vector<float>(got.values<float>().begin(), got.values<float>().end()), right)
        << "item " << i;
  }
}

}  // namespace treenail::test
