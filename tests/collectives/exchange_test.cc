// SPDX-License-Identifier: Apache-2.0
// Groups over an exchange of bytes, with late and reordered transfers, against a plain second
// implementation of each operation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <random>

#include "framework/distributed/collectives/exchange_communicator.h"
#include "tests/collectives/expect.h"
#include "tests/collectives/mail.h"
#include "tests/collectives/waited.h"

namespace treenail {
namespace {

template <class Body>
void as_group(int size, const Body& body, int64_t timeout_ns = 0) {
  const auto post = std::make_shared<test::Post>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const std::shared_ptr<Communicator> group =
          exchange_communicator(std::make_unique<test::Mail>(post, rank, size), timeout_ns);
      body(*group);
      group->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Of item i on a rank: [rows, 3] or so; kAllGather has other rows on each rank.
Tensor item(int i, int rank, int ranks) {
  const int64_t rows = i % 6 == 2 ? rank + i % 3 : ranks * (i % 11 == 5 ? 4001 : i % 5);
  Tensor value(DType::kFloat32, Shape({rows, 3}));
  for (int64_t j = 0; j < value.num_elements(); ++j)
    value.data<float>()[j] = 1.0F / static_cast<float>(1 + (j + i) % 89 + rank * 17);
  return value;
}

std::vector<float> wanted(int i, int rank, int ranks) {
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

IntrusivePtr<test::Waited> submit(Communicator& group, int i) {
  auto wanted = make_counted<test::Waited>();
  wanted->kind = static_cast<CollectiveKind>(i % 6);
  wanted->dtype = DType::kFloat32;
  wanted->root = wanted->kind == CollectiveKind::kBroadcast ? i % group.size() : 0;
  wanted->key = "item" + std::to_string(i);
  if (wanted->kind != CollectiveKind::kBarrier)
    wanted->inputs.push_back(item(i, group.rank(), group.size()));
  group.submit(wanted);
  return wanted;
}

class Exchanges : public ::testing::TestWithParam<int> {};

TEST_P(Exchanges, ComputeWhatAPlainLoopDoes) {
  as_group(GetParam(), [&](Communicator& group) {
    std::vector<int> order(180);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(group.rank())));
    std::vector<IntrusivePtr<test::Waited>> waited(order.size());
    for (const int i : order) waited[static_cast<size_t>(i)] = submit(group, i);
    for (int i = 0; i < 180; ++i) {
      const Tensor& got = waited[static_cast<size_t>(i)]->wait();
      const std::vector<float> right = wanted(i, group.rank(), group.size());
      if (i % 6 == 5) continue;
      ASSERT_EQ(std::vector<float>(got.values<float>().begin(), got.values<float>().end()), right)
          << "item " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Exchanges, ::testing::Values(2, 3, 4));

TEST(Exchange, SaysWhatDoesNotGoTogether) {
  as_group(2, [&](Communicator& group) {
    Tensor value(DType::kFloat32, Shape({40'000 + group.rank()}));
    EXPECT_ERROR(test::all_reduce(group, "k", value)->wait(), Code::kInvalidArgument,
                 "rank 0 asks for all_reduce (sum) of float32[40000], rank 1 for all_reduce (sum) "
                 "of float32[40001]");
    EXPECT_EQ(*test::all_reduce(group, "k", Tensor::scalar<float>(1))->wait().data<float>(), 2);
  });
}

TEST(Exchange, SaysWhoHasLeftAndWhoDoesNotCome) {
  as_group(
      2,
      [&](Communicator& group) {
        test::all_reduce(group, "a", Tensor::scalar<float>(1))->wait();
        if (group.rank() == 1) return;
        EXPECT_ERROR(test::all_reduce(group, "b", Tensor::scalar<float>(1))->wait(),
                     Code::kUnavailable, "rank 1 has left the group");
      },
      10'000'000'000);
  as_group(
      2,
      [&](Communicator& group) {
        if (group.rank() == 1) ::usleep(500'000);
        if (group.rank() == 0) {
          EXPECT_ERROR(test::all_reduce(group, "a", Tensor::scalar<float>(1))->wait(),
                       Code::kDeadlineExceeded, "rank 1 has not asked for it within 0.1 s");
        }
      },
      100'000'000);
}

}  // namespace
}  // namespace treenail
