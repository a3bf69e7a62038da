// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that call each other by gRPC, each on threads of this process.
#include "framework/distributed/rank_group.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

#include "framework/distributed/rank_service.h"
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
  std::jthread other(join, 1);
  join(0);
  other.join();
}

// As a program does that leaves a group and joins the next: the other rank may be later with both.
TEST_P(RankGroupsOfTwo, WaitForARankThatIsInAnEarlierGroup) {
  const std::vector<std::string> addresses = free_addresses(2);
  std::vector<std::shared_ptr<Communicator>> first(2);
  {
    std::jthread other([&] { first[1] = join_ranks(of_rank(addresses, 1)).communicator; });
    first[0] = join_ranks(of_rank(addresses, 0)).communicator;
  }
  first[1]->close();
  first[1] = nullptr;
  RankGroup hasty = of_rank(addresses, 1);
  hasty.join_timeout_ns = 1'000'000'000;
  EXPECT_ERROR(join_ranks(hasty), Code::kAborted, "rank 0 is still in an earlier group");
  std::jthread again([&] {
    try {
      const std::shared_ptr<Communicator> group = join_ranks(of_rank(addresses, 1)).communicator;
      test::run_items(*group, 30);
      group->close();
    } catch (const Error& error) {
      ADD_FAILURE() << "rank 1: " << error.what();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // or it may meet the next group
  first[0]->close();
  first[0] = nullptr;
  const std::shared_ptr<Communicator> group = join_ranks(of_rank(addresses, 0)).communicator;
  test::run_items(*group, 30);
  again.join();
  group->close();
}

// Who has joined may leave at once: so all have to have found it by then.
TEST_P(RankGroupsOfTwo, HaveJoinedWhenAllHaveFoundEachOther) {
  for (int i = 0; i < 10; ++i) as_ranks(2, [](Communicator&) {});
  const std::vector<std::string> addresses = free_addresses(2);
  RankService silent(greeting(of_rank(addresses, 1)), std::make_shared<RankInbox>(2),
                     Admission(addresses, nullptr));
  const RpcListener listener(silent, addresses[1]);
  RankGroup group = of_rank(addresses, 0);
  group.join_timeout_ns = 1'000'000'000;
  EXPECT_ERROR(join_ranks(group), Code::kDeadlineExceeded,
               "rank 1 (" + addresses[1] + ") answers, but has not called rank 0 in time");
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

  // Who hears of it first is told, and is gone then: the other may only hear that.
  std::string first, second;
  const auto join = [](RankGroup group, std::string& said) {
    group.join_timeout_ns = 2'000'000'000;
    said = testing::error_of([&] { join_ranks(group); });
  };
  std::jthread other([&] {
    join(of_rank({addresses[0], addresses[1], "127.0.0.1:1"}, 1), second);
  });
  join(of_rank(addresses, 0), first);
  other.join();
  EXPECT_NE(first, "no error");
  EXPECT_NE(second, "no error");
  EXPECT_NE((first + second).find("different addresses"), std::string::npos) << first << second;
}

// A rank 1 that sends what no rank does: parts and notes of any numbers, with the token of rank 0.
class Impostor {
 public:
  explicit Impostor(const std::vector<std::string>& addresses)
      : service_(hello(addresses), std::make_shared<RankInbox>(2), Admission(addresses, nullptr)),
        listener_(service_, addresses[1]),
        peer_("rank 0", addresses[0]) {
    const Message reply = peer_.call(protocol::ranks::kHello, protocol::write(hello(addresses)), {},
                                     {.timeout_ms = 10'000, .wait_for_ready = true});
    token_ = protocol::read<protocol::RankHello>(reply.fields()).token;
  }
  ~Impostor() { service_.say_farewell(); }

  // Whether it was taken.
  bool send(std::mt19937& random, uint64_t number) {
    protocol::RankBytes said;
    said.token = random() % 8 == 0 ? "another" : token_;
    said.rank = random() % 8 == 0 ? random() % 4 : 1;
    said.tag = random() % 4;
    const bool note = random() % 2 == 0;
    said.number = note ? number : random() % 3;
    said.offset = random() % 3 == 0 ? ~uint64_t{0} - random() % 9 : random() % 64;
    said.total = random() % 3 == 0 ? ~uint64_t{0} - random() % 9 : random() % 256;
    const Tensor bytes = note ? note_of(random, number) : noise(random, random() % 300);
    try {
      peer_.call(note ? protocol::ranks::kNote : protocol::ranks::kPart, protocol::write(said),
                 std::span(&bytes, 1), {.timeout_ms = 10'000});
      return true;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Code::kUnavailable) << error.what();
      return false;
    }
  }

 private:
  static protocol::RankHello hello(const std::vector<std::string>& addresses);
  static Tensor noise(std::mt19937& random, size_t size) {
    Tensor bytes(DType::kUInt8, Shape({static_cast<int64_t>(size)}));
    for (size_t i = 0; i < size; ++i) bytes.data<uint8_t>()[i] = static_cast<uint8_t>(random());
    return bytes;
  }
  // A sound descriptor of "k", in which some bytes are others.
  static Tensor note_of(std::mt19937& random, uint64_t number) {
    auto wanted = make_counted<test::Waited>();
    wanted->kind = static_cast<CollectiveKind>(random() % 6);
    wanted->dtype = DType::kFloat32;
    wanted->key = "k" + std::to_string(random() % 6);
    wanted->inputs.push_back(Tensor(DType::kFloat32, Shape({4, 2})));
    const Descriptor d = describe(*wanted, random() % 3);
    Tensor bytes = noise(random, 16 + sizeof(d) + random() % 40);
    auto* const at = bytes.data<uint8_t>();
    std::memcpy(at, &number, 8);
    std::memset(at + 8, 0, 8);
    std::memcpy(at + 16, &d, sizeof(d));
    for (int change = static_cast<int>(random() % 3); change > 0; --change)
      at[16 + 16 + random() % (sizeof(d) - 16)] = static_cast<uint8_t>(random());
    return bytes;
  }

  RankService service_;
  RpcListener listener_;
  RpcPeer peer_;
  std::string token_;
};

protocol::RankHello Impostor::hello(const std::vector<std::string>& addresses) {
  return greeting(of_rank(addresses, 1));
}

TEST_P(RankGroupsOfTwo, OutliveARankThatSendsAnything) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const std::vector<std::string> addresses = free_addresses(2);
    std::atomic<bool> joined{false};
    std::jthread other([&] {
      std::mt19937 random(seed);
      Impostor impostor(addresses);
      joined.wait(false);  // or rank 0 may come when it has gone
      for (uint64_t number = 0, sent = 0; sent < 150; ++sent)
        number += impostor.send(random, number);
    });
    RankGroup where = of_rank(addresses, 0);
    where.timeout_ns = 300'000'000;
    std::shared_ptr<Communicator> group;
    const std::string said = testing::error_of([&] { group = join_ranks(where).communicator; });
    joined = true;
    joined.notify_all();
    ASSERT_EQ(said, "no error");
    std::vector<IntrusivePtr<test::Waited>> waited;
    for (int i = 0; i < 18; ++i) {
      waited.push_back(make_counted<test::Waited>());
      waited.back()->kind = static_cast<CollectiveKind>(i % 6);
      waited.back()->dtype = DType::kFloat32;
      waited.back()->key = "k" + std::to_string(i % 6);
      waited.back()->inputs.push_back(Tensor(DType::kFloat32, Shape({4, 2})));
      group->submit(waited.back());
    }
    for (const auto& each : waited) {  // has ended, with whatever
      try {
        each->wait();
      } catch (const Error& error) {
        EXPECT_NE(error.code(), Code::kInternal) << error.what();
      }
    }
    other.join();
    group->close();
  }
}

}  // namespace
}  // namespace treenail
