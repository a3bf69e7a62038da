// SPDX-License-Identifier: Apache-2.0
// Groups in shared memory: random work in random order against a plain sum, ranks that end, that do
// not come, and that fork.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <random>

#include "framework/base/spin.h"
#include "tests/collectives/expect.h"
#include "tests/collectives/waited.h"
#include "tests/support/child.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::all_reduce;
using test::as_group;

constexpr int64_t kSecond = 1'000'000'000;

// Of item i on a rank: numbers whose sum depends on the order of summation.
Tensor item(int i, int rank) {
  const int64_t elements = i % 7 == 0 ? 30'000 + i : i % 50;
  Tensor value(DType::kFloat32, Shape({elements}));
  for (int64_t j = 0; j < elements; ++j)
    value.data<float>()[j] = 1.0F / static_cast<float>(1 + (j + i) % 97 + rank * 13);
  return value;
}

void expect_sum(const Tensor& got, int i, int ranks) {
  const Tensor first = item(i, 0);
  ASSERT_EQ(got.shape(), first.shape());
  for (int64_t j = 0; j < first.num_elements(); ++j) {
    float sum = first.data<float>()[j];
    for (int r = 1; r < ranks; ++r) sum += 1.0F / static_cast<float>(1 + (j + i) % 97 + r * 13);
    ASSERT_EQ(got.data<float>()[j], sum) << "item " << i << " element " << j;
  }
}

class Groups : public ::testing::TestWithParam<int> {};

TEST_P(Groups, SumInTheOrderOfRanksWhateverTheOrderOfCalls) {
  const int ranks = GetParam();
  const test::TemporaryDirectory around;
  as_group(around.path() + "/g", ranks, [&](Communicator& group) {
    std::vector<int> order(200);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(group.rank())));
    std::vector<IntrusivePtr<test::Waited>> waited(order.size());
    const auto submit = [&](size_t begin) {
      for (size_t at = begin; at < order.size(); at += 2) {
        const int i = order[at];
        waited[static_cast<size_t>(i)] =
            all_reduce(group, "item" + std::to_string(i), item(i, group.rank()));
      }
    };
    std::thread other([&] { submit(1); });
    submit(0);
    other.join();
    for (size_t i = 0; i < waited.size(); ++i)
      expect_sum(waited[i]->wait(), static_cast<int>(i), ranks);
  });
}

// Memory of a group's own is the same again and again, and nothing is copied into other memory.
TEST_P(Groups, ValuesComputedInTheirMemoryTakeNoOther) {
  const int ranks = GetParam();
  const test::TemporaryDirectory around;
  const int64_t before = Segment::created_bytes();
  as_group(around.path() + "/g", ranks, [&](Communicator& group) {
    for (int i = 0; i < 40; ++i) {
      Tensor value = group.allocate(DType::kFloat32, Shape({500'000}));
      EXPECT_EQ(value.borrowed(), ranks > 1);
      std::fill_n(value.data<float>(), 500'000, static_cast<float>(i + group.rank()));
      const auto waited = all_reduce(group, "", std::move(value));
      const Tensor& sum = waited->wait();
      const int ranks_sum = ranks * (ranks - 1) / 2;
      const auto wanted = static_cast<float>(ranks * i + ranks_sum);
      for (int64_t j = 0; j < 500'000; ++j) ASSERT_EQ(sum.data<float>()[j], wanted);
    }
    // 2 MB: in turn, as ranks are not equally fast. All ranks are in this process.
    EXPECT_LT(Segment::created_bytes() - before, ranks * 10'000'000);
  });
  EXPECT_EQ(Segment::created_bytes(), before);
}

// More than the table has room for, all of one key: executions follow each other.
TEST_P(Groups, TakeMoreThanTheTableHolds) {
  const test::TemporaryDirectory around;
  as_group(around.path() + "/g", GetParam(), [&](Communicator& group) {
    std::vector<IntrusivePtr<test::Waited>> waited;
    for (int i = 0; i < 1500; ++i) {
      waited.push_back(
          all_reduce(group, "", Tensor::vector<int32_t>({i, group.rank()}), Reduction::kMax));
    }
    for (int i = 0; i < 1500; ++i) {
      const Tensor& got = waited[static_cast<size_t>(i)]->wait();
      ASSERT_EQ(got.data<int32_t>()[0], i);
      ASSERT_EQ(got.data<int32_t>()[1], group.size() - 1);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Groups, ::testing::Values(1, 2, 3, 5));

// Values that are results of earlier collectives lie in shared memory already.
TEST(SharedMemoryGroup, TakesResultsAsInputs) {
  const test::TemporaryDirectory around;
  as_group(around.path() + "/g", 2, [&](Communicator& group) {
    Tensor value(DType::kFloat32, Shape({100'000}));
    for (int64_t j = 0; j < 100'000; ++j) value.data<float>()[j] = 1;
    for (int i = 1; i < 10; ++i) {
      value = all_reduce(group, "chain", value)->wait();
      ASSERT_EQ(value.data<float>()[99'999], static_cast<float>(1 << i));
    }
  });
}

TEST(SharedMemoryGroup, SaysWhoDoesNotCome) {
  const test::TemporaryDirectory around;
  as_group(
      around.path() + "/g", 3,
      [&](Communicator& group) {
        if (group.rank() == 0) {
          const auto waited = all_reduce(group, "k", Tensor::scalar<float>(1));
          EXPECT_ERROR(waited->wait(), Code::kDeadlineExceeded,
                       "all_reduce 'k' (execution 0): rank 1, 2 has not asked for it within 1 s");
        }
        ::usleep(group.rank() == 0 ? 200'000 : 1'200'000);
        // It is still there for those who come late; and the group goes on.
        if (group.rank() != 0) {
          EXPECT_EQ(*all_reduce(group, "k", Tensor::scalar<float>(1))->wait().data<float>(), 3);
        }
        EXPECT_EQ(*all_reduce(group, "l", Tensor::scalar<float>(1))->wait().data<float>(), 3);
      },
      kSecond);
}

TEST(SharedMemoryGroup, NoticesWithinASecondThatARankWasKilled) {
  const test::TemporaryDirectory around;
  SharedMemoryGroup where;
  where.size = 2;
  where.directory = around.path() + "/g";
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    where.rank = 1;
    const std::shared_ptr<Communicator> group = join_shared_memory(where);
    all_reduce(*group, "a", Tensor::scalar<float>(1))->wait();
    ::kill(::getpid(), SIGKILL);
  }
  const std::shared_ptr<Communicator> group = join_shared_memory(where);
  all_reduce(*group, "a", Tensor::scalar<float>(1))->wait();
  int status = 0;
  const auto late = [&] { all_reduce(*group, "b", Tensor::scalar<float>(1))->wait(); };
  const int64_t begin = monotonic_ns();
  EXPECT_ERROR(late(), Code::kUnavailable, "has ended");
  EXPECT_LT(monotonic_ns() - begin, kSecond);
  ::waitpid(child, &status, 0);
  EXPECT_ERROR(late(), Code::kUnavailable, "rank 1 (process ");
}

TEST(SharedMemoryGroup, SaysThatARankHasLeft) {
  const test::TemporaryDirectory around;
  as_group(around.path() + "/g", 2, [&](Communicator& group) {
    all_reduce(group, "a", Tensor::scalar<float>(1))->wait();
    if (group.rank() == 1) return;
    EXPECT_ERROR(all_reduce(group, "b", Tensor::scalar<float>(1))->wait(), Code::kUnavailable,
                 "has left the group");
  });
}

TEST(SharedMemoryGroup, HasNoMembersByFork) {
  const test::TemporaryDirectory around;
  as_group(around.path() + "/g", 2, [&](Communicator& group) {
    const Tensor mine = all_reduce(group, "a", item(7, group.rank()))->wait();
    if (group.rank() == 0) {
      const int status = test::in_child([&] {
        try {
          all_reduce(group, "b", Tensor::scalar<float>(1));
        } catch (const Error& error) {
          return error.code() == Code::kFailedPrecondition && mine.data<float>()[0] > 0 ? 0 : 1;
        }
        return 2;
      });
      EXPECT_EQ(status, 0);
    }
    expect_sum(mine, 7, 2);
    EXPECT_EQ(*all_reduce(group, "b", Tensor::scalar<float>(1))->wait().data<float>(), 2);
  });
}

TEST(SharedMemoryGroup, RefusesPeersThatDoNotFit) {
  const test::TemporaryDirectory around;
  SharedMemoryGroup where;
  where.directory = around.path() + "/g";
  where.rank = 2;
  where.size = 2;
  EXPECT_ERROR(join_shared_memory(where), Code::kInvalidArgument, "counted from 0");
  where.rank = 0;
  where.join_timeout_ns = kSecond / 20;
  EXPECT_ERROR(join_shared_memory(where), Code::kDeadlineExceeded,
               "rank 1 has not joined the group: no further process");
  where.join_timeout_ns = 10 * kSecond;
  std::thread other([where]() mutable {
    where.rank = 1;
    where.size = 3;
    where.join_timeout_ns = kSecond / 2;
    EXPECT_THROW(join_shared_memory(where), Error);
  });
  EXPECT_ERROR(join_shared_memory(where), Code::kInvalidArgument, "rank 1 of 3 has joined");
  other.join();
}

}  // namespace
}  // namespace treenail
