// SPDX-License-Identifier: Apache-2.0
// Messages in parts, which are small here: as data, at a server, and through runs of a cluster.
#include "framework/distributed/long_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/distributed/long_messages.h"
#include "framework/distributed/protocol.h"
#include "framework/tensor/string_element.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using testing::error_of;

std::vector<Tensor> samples() {
  Tensor strings(DType::kString, Shape({2, 2}));
  strings.data<StringElement>()[1] = StringElement("two");
  strings.data<StringElement>()[3] = StringElement(std::string(3000, 'x'));
  Tensor large(DType::kFloat64, Shape({50, 7}));
  for (int64_t i = 0; i < large.num_elements(); ++i) large.data<double>()[i] = 0.5 * i;
  return {Tensor(DType::kInt32, Shape({0, 3})),
          Tensor::scalar(3.5f),
          strings,
          Tensor(DType::kFloat32, Shape({0})),
          large,
          Tensor::vector<bool>({true, false}),
          Tensor(DType::kInt64, Shape({2, 0}))};
}

std::string text_of(const Tensor& tensor) {
  std::string text = std::string(dtype_name(tensor.dtype()));
  for (const int64_t dim : tensor.shape().dims()) text += " " + std::to_string(dim);
  if (tensor.dtype() != DType::kString)
    return text.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    text.append("|").append(tensor.data<StringElement>()[i].view());
  return text;
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(text_of(a[i]), text_of(b[i])) << i;
}

std::string bytes_of(const std::vector<RpcSlice>& slices) {
  std::string bytes;
  for (const RpcSlice& slice : slices) {
    bytes.append(static_cast<const char*>(slice.data), slice.bytes);
    if (slice.release != nullptr) slice.release(slice.owner);
  }
  return bytes;
}

// A message that is cut into head and elements.
struct Cut {
  explicit Cut(const std::vector<Tensor>& tensors) {
    OutgoingMessage message({}, tensors);
    parts = std::make_shared<const OutgoingParts>(message.take_payload("token"));
    head = bytes_of(message.take_slices()).substr(4);
  }
  std::string part(uint64_t offset, size_t bytes) const {
    std::vector<RpcSlice> slices;
    OutgoingParts::add_slices(parts, offset, bytes, slices);
    return bytes_of(slices);
  }
  std::shared_ptr<const OutgoingParts> parts;
  std::string head;
};

template <class Use>
void with_bytes(const std::string& bytes, Use use) {
  const RpcView view{bytes.data(), bytes.size()};
  MessageBytes given(std::span(&view, 1));
  use(given);
}

constexpr uint64_t kMuch = 1 << 20;

TEST(LongMessage, ComesAsItWasSentHoweverItIsCut) {
  const Cut cut(samples());
  for (const size_t step : {size_t{1}, size_t{7}, size_t{1000}, size_t{cut.parts->bytes()}}) {
    IncomingParts in(cut.head, kMuch);
    EXPECT_EQ(in.bytes(), cut.parts->bytes());
    while (in.left() > 0) {
      const size_t now = std::min<uint64_t>(step, in.left());
      with_bytes(cut.part(in.bytes() - in.left(), now), [&](MessageBytes& b) { in.take(b); });
    }
    expect_same(in.tensors(), samples());
  }
}

// Whatever a head says, the numbers of bytes are those of its tensors, or it is refused.
TEST(LongMessage, SurvivesAnyChangeOfItsHead) {
  const Cut cut(samples());
  std::mt19937 random(7);
  int taken = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string head = cut.head;
    for (int change = 0; change < 1 + round % 3; ++change)
      head[random() % head.size()] = static_cast<char>(random());
    try {
      IncomingParts in(head, kMuch);
      EXPECT_LE(in.bytes(), kMuch);
      const uint64_t all = in.left();
      const bool same = all == cut.parts->bytes();
      const std::string bytes = same ? cut.part(0, all) : std::string(all, '\0');
      if (all > 0) with_bytes(bytes, [&](MessageBytes& b) { in.take(b); });
      in.tensors();
      ++taken;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Code::kInvalidArgument ||
                  error.code() == Code::kResourceExhausted)
          << error.what();
      ++refused;
    }
  }
  EXPECT_GT(taken, 50);
  EXPECT_GT(refused, 50);
}

class LongMessagesTest : public ::testing::Test {
 protected:
  inline static int64_t now = 1;  // of the clock
  LongMessages all{4096, [] { return now; }};
  const Cut cut{{Tensor::vector<int32_t>({1, 2, 3, 4})}};

  std::string put(const std::string& who, uint64_t offset, size_t bytes) {
    return error_of([&] {
      with_bytes(std::string(bytes, 'x'), [&](MessageBytes& b) {
        all.put(who, {"token", offset, 0}, b);
      });
    });
  }
  std::string taken(const std::string& who) {
    return error_of([&] { all.take(who, cut.head); });
  }
};

TEST_F(LongMessagesTest, BelongToTheirCaller) {
  all.begin("me", cut.head);
  EXPECT_EQ(put("you", 0, 16),
            "InvalidArgument: a part of a message that the caller has not begun here, or that was "
            "dropped, since nothing came for long or a part was no good");
  all.drop("you", "token");
  EXPECT_EQ(put("me", 0, 16), "no error");
  EXPECT_NE(taken("you"), "no error");
  EXPECT_EQ(taken("me"), "no error");
  EXPECT_NE(taken("me"), "no error");  // once
}

TEST_F(LongMessagesTest, WantEachPartOnceInItsOrder) {
  all.begin("me", cut.head);
  EXPECT_EQ(error_of([&] { all.begin("me", cut.head); }),
            "InvalidArgument: two messages in parts have one token");
  EXPECT_EQ(put("me", 0, 4), "no error");
  EXPECT_EQ(put("me", 0, 4),
            "InvalidArgument: a part of a message from byte 0 on, where that from "
            "byte 4 on is to come");
  EXPECT_NE(put("me", 4, 4), "no error");  // it has ended
  all.begin("me", cut.head);
  EXPECT_EQ(put("me", 0, 17),
            "InvalidArgument: a part of 17 bytes of a message of which 16 are left");
  all.begin("me", cut.head);
  EXPECT_NE(put("me", 0, 0), "no error");
  all.begin("me", cut.head);
  EXPECT_EQ(put("me", 0, 12), "no error");
  EXPECT_EQ(taken("me"),
            "InvalidArgument: a message in parts is to be read, and 4 of its 16 bytes "
            "have not come");
}

TEST_F(LongMessagesTest, HaveALimitForEachCaller) {
  const Tensor large(DType::kFloat32, Shape({600}));
  all.keep("me", "a", {large});
  all.keep("you", "a", {large});
  const std::string said = error_of([&] { all.keep("me", "b", {large}); });
  EXPECT_TRUE(
      said.starts_with("ResourceExhausted: a message of 2400 bytes in parts; its caller has "))
      << said;
  EXPECT_NE(error_of([&] { all.begin("you", Cut({Tensor(DType::kInt8, Shape({4097}))}).head); }),
            "");
  all.drop("me", "a");
  all.keep("me", "b", {large});
}

TEST_F(LongMessagesTest, AreFetchedInTheirOrderAndGo) {
  all.keep("me", "a", {Tensor::vector<int32_t>({1, 2, 3, 4})});
  EXPECT_EQ(bytes_of(all.get("me", {"a", 0, 8})).size(), 8u);
  for (const protocol::Part& wrong : {protocol::Part{"a", 0, 8}, {"a", 8, 9}, {"a", 8, 0}})
    EXPECT_NE(error_of([&] { all.get("me", wrong); }), "no error");
  EXPECT_NE(error_of([&] { all.get("you", {"a", 8, 8}); }), "no error");
  EXPECT_EQ(bytes_of(all.get("me", {"a", 8, 8})).size(), 8u);
  EXPECT_NE(error_of([&] { all.get("me", {"a", 16, 0}); }), "no error");
}

TEST_F(LongMessagesTest, GoWhenNobodyGoesOnWithThem) {
  constexpr int64_t kMinute = 60'000'000'000;
  all.keep("me", "a", {Tensor(DType::kInt8, Shape({4000}))});
  now += 4 * kMinute;
  const std::vector<RpcSlice> on_its_way = all.get("me", {"a", 0, 1000});
  now += 6 * kMinute;
  EXPECT_NE(error_of([&] { all.keep("me", "b", {Tensor(DType::kInt8, Shape({4000}))}); }),
            "no error");
  EXPECT_EQ(bytes_of(on_its_way).size(), 1000u);
  now += 6 * kMinute;
  all.keep("me", "b", {Tensor(DType::kInt8, Shape({4000}))});
  EXPECT_NE(error_of([&] { all.get("me", {"a", 1000, 1000}); }), "no error");
}

TEST_F(LongMessagesTest, SurviveManyThreadsThatSayAnything) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int round = 0; round < 2000; ++round) {
        const std::string who = random() % 2 == 0 ? "me" : "you";
        try {
          switch (random() % 6) {
            case 0:
              all.begin(who, cut.head);
              break;
            case 1:
              all.take(who, cut.head);
              break;
            case 2:
              all.keep(who, "token", {Tensor::scalar(1.0)});
              break;
            case 3:
              bytes_of(all.get(who, {"token", random() % 9, random() % 9}));
              break;
            case 4:
              all.drop(who, "token");
              break;
            default:
              with_bytes(std::string(random() % 17, 'x'), [&](MessageBytes& b) {
                all.put(who, {"token", 4 * (random() % 4), 0}, b);
              });
          }
        } catch (const Error& error) {
          EXPECT_TRUE(error.code() == Code::kInvalidArgument ||
                      error.code() == Code::kResourceExhausted)
              << error.what();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Nothing is left to be counted.
  for (const char* who : {"me", "you"}) {
    all.drop(who, "token");
    all.keep(who, "token", {Tensor(DType::kInt8, Shape({4096}))});
  }
}

// --- Through a cluster ---------------------------------------------------------------------------

class LongRuns : public test::InProcessCluster {
 protected:
  void SetUp() override {
    set_most_part_bytes(1000);
    InProcessCluster::SetUp();
  }
  void TearDown() override {
    InProcessCluster::TearDown();
    set_most_part_bytes(0);
  }
};

Output at(const char* device, Output value) {
  value.node->graph().set_device(*value.node, device);
  return value;
}

Tensor ramp(int64_t n) {
  Tensor made(DType::kFloat32, Shape({n}));
  for (int64_t i = 0; i < n; ++i) made.data<float>()[i] = static_cast<float>(i);
  return made;
}

// Fed to another task than the session's, passed to the session's, and fetched from both.
TEST_P(LongRuns, FeedPassAndFetchWhatIsTooLongForAMessage) {
  begin(1);
  if (IsSkipped()) return;
  test::GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output s = b.placeholder(DType::kString, {kUnknown}, "s");
  const Output far = at("/job:ps/task:0", b.op("Neg", {x}, {}, "far"));
  at("/job:worker/task:0", b.op("Neg", {far}, {}, "near"));
  at("/job:ps/task:0", b.op("Identity", {s}, {}, "text"));
  Session session(b.graph, at_worker(b.graph));
  Tensor text(DType::kString, Shape({300}));
  for (int64_t i = 0; i < 300; ++i)
    text.data<StringElement>()[i] = StringElement(std::string(static_cast<size_t>(i), 'a'));
  for (const int64_t n : {10, 249, 250, 251, 5000}) {
    const std::vector<Tensor> got =
        session.run({{"x:0", ramp(n)}, {"s:0", text}}, {"near:0", "far:0", "text:0"});
    ASSERT_EQ(got[0].num_elements(), n);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(got[0].data<float>()[i], static_cast<float>(i));
      EXPECT_EQ(got[1].data<float>()[i], -static_cast<float>(i));
    }
    for (int64_t i = 0; i < 300; ++i)
      EXPECT_EQ(got[2].data<StringElement>()[i].view().size(), static_cast<size_t>(i));
  }
}

TEST_P(LongRuns, EndInTime) {
  begin(1);
  if (IsSkipped()) return;
  test::GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  at("/job:ps/task:0", b.op("Neg", {x}, {}, "far"));
  Session session(b.graph, at_worker(b.graph));
  RunOptions options;
  options.timeout_ms = 1;
  const std::string said = error_of([&] {
    session.run({{"x:0", ramp(1'000'000)}}, {"far:0"}, {}, options);
  });
  EXPECT_TRUE(said.starts_with("DeadlineExceeded: ")) << said;
  CancellationToken token;
  token.cancel(Code::kCancelled, "enough");
  options = {};
  options.token = &token;
  EXPECT_EQ(error_of([&] {
              session.run({{"x:0", ramp(1'000'000)}}, {"far:0"}, {}, options);
            }),
            "Cancelled: enough");
  EXPECT_EQ(session.run({{"x:0", ramp(3000)}}, {"far:0"})[0].num_elements(), 3000);
}

TEST_P(LongRuns, RefuseWhatIsOverTheServersLimit) {
  limits.message_bytes = 4000;
  begin(1);
  if (IsSkipped()) return;
  test::GraphBuilder b;
  b.op("Neg", {b.placeholder(DType::kFloat32, {kUnknown}, "x")}, {}, "y");
  Session session(b.graph, at_worker(b.graph));
  EXPECT_EQ(session.run({{"x:0", ramp(900)}}, {"y:0"})[0].num_elements(), 900);
  EXPECT_EQ(error_of([&] {
              session.run({{"x:0", ramp(1001)}}, {"y:0"});
            }),
            "ResourceExhausted: a message of more than 4000 bytes, which is the limit here");
  EXPECT_EQ(session.run({{"x:0", ramp(1000)}}, {"y:0"})[0].num_elements(), 1000);
}

INSTANTIATE_TEST_SUITE_P(By, LongRuns,
                         ::testing::Values(test::Transport::kLent, test::Transport::kGrpc,
                                           test::Transport::kMemory),
                         test::name_of);

}  // namespace
}  // namespace treenail
