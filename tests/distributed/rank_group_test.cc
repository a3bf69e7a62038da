// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that call each other by gRPC, each on threads of this process.
#include "framework/distributed/rank_group.h"

#include <unistd.h>

#include "tests/collectives/expect.h"
#include "tests/collectives/items.h"
#include "tests/distributed/in_process_cluster.h"

namespace treenail {
namespace {

std::vector<std::string> free_addresses(int size) {
  std::vector<std::string> addresses;
  for (int rank = 0; rank < size; ++rank)
    addresses.push_back("127.0.0.1:" + std::to_string(test::free_port()));
  return addresses;
}

bool has_grpc() {
  try {
    const RpcPeer peer("nobody", "127.0.0.1:1");
    return true;
  } catch (const Error&) {
    return false;
  }
}

class RankGroups : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_grpc()) GTEST_SKIP() << "without gRPC";
  }
};

RankGroup of_rank(const std::vector<std::string>& addresses, int rank) {
  RankGroup group;
  group.addresses = addresses;
  group.rank = rank;
  group.prefer_shared_memory = false;
  group.join_timeout_ns = 20'000'000'000;
  group.timeout_ns = 60'000'000'000;
  return group;
}

template <class Body>
void as_ranks(int size, const Body& body, int64_t timeout_ns = 60'000'000'000) {
  const std::vector<std::string> addresses = free_addresses(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      RankGroup where = of_rank(addresses, rank);
      where.timeout_ns = timeout_ns;
      const std::shared_ptr<Communicator> group = join_ranks(where).communicator;
      EXPECT_STREQ(group->transport(), "grpc");
      body(*group);
      group->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(RankGroups, ComputeWhatAPlainLoopDoes) {
  as_ranks(GetParam(), [](Communicator& group) { test::run_items(group, 120); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, RankGroups, ::testing::Values(2, 3, 4));

using RankGroupsOfTwo = RankGroups;
INSTANTIATE_TEST_SUITE_P(Two, RankGroupsOfTwo, ::testing::Values(2));

// Larger than a part, and no multiple of one.
TEST_P(RankGroupsOfTwo, SendWhatIsLargeInParts) {
  as_ranks(2, [](Communicator& group) {
    for (int round = 0; round < 3; ++round) {
      Tensor value(DType::kFloat32, Shape({5'000'001}));
      for (int64_t i = 0; i < value.num_elements(); ++i)
        value.data<float>()[i] = static_cast<float>((i * 7 + round) % 1000 + group.rank() * 1000);
      const Tensor sum = test::all_reduce(group, "large", value)->wait();
      for (int64_t i = 0; i < sum.num_elements(); ++i)
        ASSERT_EQ(sum.data<float>()[i], static_cast<float>((i * 7 + round) % 1000 * 2 + 1000)) << i;
    }
  });
}

TEST_P(RankGroupsOfTwo, SayWhoHasLeftAndWhoDoesNotCome) {
  as_ranks(2, [](Communicator& group) {
    test::all_reduce(group, "a", Tensor::scalar<float>(1))->wait();
    if (group.rank() == 1) return;
    EXPECT_ERROR(test::all_reduce(group, "b", Tensor::scalar<float>(1))->wait(), Code::kUnavailable,
                 "rank 1 has left the group");
  });
  as_ranks(
      2,
      [](Communicator& group) {
        if (group.rank() == 1) ::usleep(500'000);
        if (group.rank() == 0) {
          EXPECT_ERROR(test::all_reduce(group, "a", Tensor::scalar<float>(1))->wait(),
                       Code::kDeadlineExceeded, "rank 1 has not asked for it within 0.1 s");
        }
      },
      100'000'000);
}

TEST_P(RankGroupsOfTwo, ShareMemoryOnOneHost) {
  const std::vector<std::string> addresses = free_addresses(2);
  const auto join = [&](int rank) {
    RankGroup where = of_rank(addresses, rank);
    where.prefer_shared_memory = true;
    const RanksJoined joined = join_ranks(where);
    EXPECT_STREQ(joined.communicator->transport(), "shared_memory");
    EXPECT_EQ(joined.local_rank, rank);
    EXPECT_EQ(joined.local_size, 2);
    test::run_items(*joined.communicator, 30);
    joined.communicator->close();
  };
  std::thread other(join, 1);
  join(0);
  other.join();
}

TEST_P(RankGroupsOfTwo, SayWhatDoesNotGoTogether) {
  std::vector<std::string> addresses = free_addresses(2);
  RankGroup none = of_rank(addresses, 2);
  EXPECT_ERROR(join_ranks(none), Code::kInvalidArgument, "rank 2 is not in [0, 2)");
  RankGroup twice = of_rank({addresses[0], addresses[0]}, 0);
  EXPECT_ERROR(join_ranks(twice), Code::kInvalidArgument, "is given for two ranks");
  RankGroup open = of_rank({"0.0.0.0:0", addresses[1]}, 0);
  EXPECT_ERROR(join_ranks(open), Code::kPermissionDenied, "refuses to listen on 0.0.0.0:0");

  RankGroup alone = of_rank(addresses, 0);
  alone.join_timeout_ns = 300'000'000;
  EXPECT_ERROR(join_ranks(alone), Code::kDeadlineExceeded, "rank 1 (" + addresses[1] + ")");

  std::thread other([&] {
    RankGroup third = of_rank({addresses[0], addresses[1], "127.0.0.1:1"}, 1);
    third.join_timeout_ns = 5'000'000'000;
    EXPECT_ERROR(join_ranks(third), Code::kInvalidArgument, "different addresses");
  });
  RankGroup two = of_rank(addresses, 0);
  two.join_timeout_ns = 2'000'000'000;
  EXPECT_NE(testing::error_of([&] { join_ranks(two); }), "");
  other.join();
}

}  // namespace
}  // namespace treenail
