// SPDX-License-Identifier: Apache-2.0
// Groups over an exchange of bytes, with late and reordered transfers, against a plain second
// implementation of each operation.
#include <gtest/gtest.h>
#include <unistd.h>

#include "framework/distributed/collectives/exchange_communicator.h"
#include "tests/collectives/expect.h"
#include "tests/collectives/items.h"
#include "tests/collectives/mail.h"
#include "tests/collectives/waited.h"

namespace treenail {
namespace {

template <class Body>
void as_group(int size, const Body& body, int64_t timeout_ns = 0,
              const std::shared_ptr<test::Post>& post = std::make_shared<test::Post>()) {
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

class Exchanges : public ::testing::TestWithParam<int> {};

TEST_P(Exchanges, ComputeWhatAPlainLoopDoes) {
  as_group(GetParam(), [&](Communicator& group) { test::run_items(group, 180); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Exchanges, ::testing::Values(2, 3, 4));

// A copy of what is sent is made of other memory alone.
TEST(Exchange, SendsWhatWasComputedInItsMemoryFromThere) {
  constexpr int64_t kElements = 50'000;
  const auto post = std::make_shared<test::Post>();
  const auto body = [&](Communicator& group) {
    for (int i = 0; i < 20; ++i) {
      const bool planned = i % 2 == 0;
      const Shape shape({kElements});
      Tensor value =
          planned ? group.allocate(DType::kFloat32, shape) : Tensor(DType::kFloat32, shape);
      EXPECT_EQ(value.borrowed(), planned);
      std::fill_n(value.data<float>(), kElements, static_cast<float>(i + group.rank()));
      const auto* const begin = static_cast<const std::byte*>(value.raw());
      const auto waited = test::all_reduce(group, "", value);
      const Tensor& sum = waited->wait();
      for (int64_t j = 0; j < kElements; ++j)
        ASSERT_EQ(sum.data<float>()[j], static_cast<float>(2 * i + 1));
      const std::lock_guard lock(post->mutex);  // two tags for each execution
      const std::byte* const sent = post->from.at({group.rank(), 1 - group.rank(), 1 + 2 * i});
      EXPECT_EQ(sent >= begin && sent < begin + value.bytes(), planned);
    }
  };
  as_group(2, body, 0, post);
}

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

// Who leaves because of a loss may be heard before the loss is noticed.
TEST(Exchange, NamesALossRatherThanWhoLeftForIt) {
  const auto post = std::make_shared<test::Post>();
  post->lost = 1;
  std::promise<void> over;
  const std::shared_future<void> ended = over.get_future();
  const auto body = [&](Communicator& group) {
    if (group.rank() == 1) ended.wait();
    if (group.rank() != 0) return;
    const auto reduce = [&] { test::all_reduce(group, "a", Tensor::scalar<float>(1))->wait(); };
    EXPECT_ERROR(reduce(), Code::kUnavailable, "");  // by now rank 2 was heard, and rank 1 is lost
    EXPECT_ERROR(reduce(), Code::kUnavailable, "lost rank 1");
    over.set_value();
  };
  as_group(3, body, 0, post);
}

}  // namespace
}  // namespace treenail
