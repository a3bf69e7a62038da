// SPDX-License-Identifier: Apache-2.0
// A lender and a borrower over a socket pair, with a source of values that the test holds; peers
// that lie; and the pool that lends.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/distributed/borrower.h"
#include "framework/distributed/lender.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/tensor/string_element.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

constexpr int64_t kMuch = int64_t{1} << 30;

// One rendezvous for all steps.
class Source final : public ValueSource {
 public:
  void receive(const protocol::ReceiveRequest& request, Rendezvous::Receiver& receiver) override {
    values.receive(request.key, receiver);
  }
  bool forget(uint64_t, const Rendezvous::Receiver& receiver) override {
    return values.forget(receiver);
  }
  void send_again(const protocol::ReceiveRequest& request, Tensor value) override {
    again[request.key] = std::move(value);
  }
  Rendezvous values;
  std::map<std::string, Tensor> again;
};

// A kernel that receives.
struct Receive final : Done::Target {
  void ended(int32_t, std::exception_ptr found) noexcept override {
    error = std::move(found);
    done = true;
  }
  RunContext context() {
    RunContext c;
    c.values_ = &value;
    c.token_ = &token;
    return c;
  }
  std::string text() const {
    return error_of([&] {
      try {
        if (error != nullptr) std::rethrow_exception(error);
      } catch (const BodyError& inner) {
        std::rethrow_exception(inner.error);
      }
    });
  }
  Tensor value;
  CancellationToken token;
  std::exception_ptr error;
  bool done = false;
};

std::unique_ptr<RpcPeer> nobody() {
  try {
    return std::make_unique<RpcPeer>("nobody", "localhost:1");
  } catch (const Error&) {
    return nullptr;
  }
}

std::pair<LocalConnection, LocalConnection> connected() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {LocalConnection(ends[0]), LocalConnection(ends[1])};
}

class Lending : public ::testing::Test {
 protected:
  void begin(int64_t most_bytes = kMuch) {
    peer = nobody();
    if (peer == nullptr) GTEST_SKIP() << "no gRPC";
    auto [ours, theirs] = connected();
    Lender::Options options;
    options.hello = "hello";
    options.most_bytes = most_bytes;
    lender = std::make_shared<Lender>(source, std::move(ours), event, options);
    borrower = std::make_unique<Borrower>(*peer, std::move(theirs), event, "hello");
    turn();
  }
  void turn() {
    for (int i = 0; i < 4; ++i) {
      lender->flush();
      borrower->flush();
      EXPECT_TRUE(lender->hear());
      EXPECT_TRUE(borrower->hear());
    }
  }
  // What comes for a value.
  Tensor passed(const Tensor& value) {
    Receive receive;
    EXPECT_TRUE(borrower->ask({1, "key"}, receive.context(), Done(receive, 0)));
    source.values.send("key", value);
    turn();
    EXPECT_TRUE(receive.done);
    EXPECT_EQ(receive.text(), "no error");
    return receive.value;
  }

  Source source;
  std::shared_ptr<WakeEvent> event = std::make_shared<WakeEvent>();
  std::unique_ptr<RpcPeer> peer;
  std::shared_ptr<Lender> lender;
  std::unique_ptr<Borrower> borrower;
};

Tensor pattern(DType dtype, int64_t elements, int seed) {
  Tensor value(dtype, Shape({elements}));
  auto* const bytes = static_cast<uint8_t*>(value.raw());
  for (size_t i = 0; i < value.bytes(); ++i) {
    const size_t mixed = (i * 2654435761u + static_cast<size_t>(seed)) >> 7;
    bytes[i] = static_cast<uint8_t>(dtype == DType::kBool ? mixed & 1 : mixed);
  }
  return value;
}

void expect_equal(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.dtype(), wanted.dtype());
  ASSERT_EQ(got.shape(), wanted.shape());
  if (wanted.bytes() > 0) {
    EXPECT_EQ(std::memcmp(got.raw(), wanted.raw(), wanted.bytes()), 0);
  }
}

TEST_F(Lending, PassesNumbersOfEveryTypeAndSize) {
  begin();
  if (IsSkipped()) return;
  int seed = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kBool,
                            DType::kBFloat16, DType::kComplex128}) {
    for (const int64_t elements : {0, 1, 511, 8191, 8192, 8193, 100'000, 1'000'003}) {
      const Tensor value = pattern(dtype, elements, ++seed);
      expect_equal(passed(value), value);
    }
  }
  const Tensor scalar = Tensor::scalar(3.5f);
  expect_equal(passed(scalar), scalar);
  EXPECT_EQ(borrower->values(), 49u);
}

TEST_F(Lending, PassesStringsOfAnyLength) {
  begin();
  if (IsSkipped()) return;
  for (const size_t length : {size_t{0}, size_t{5}, size_t{9000}, size_t{3} << 20}) {
    Tensor value(DType::kString, Shape({2}));
    value.data<StringElement>()[0] = StringElement(std::string(length, 'x'));
    value.data<StringElement>()[1] = StringElement("end");
    const Tensor got = passed(value);
    EXPECT_EQ(got.data<StringElement>()[0].view(), std::string(length, 'x'));
    EXPECT_EQ(got.data<StringElement>()[1].view(), "end");
  }
}

TEST_F(Lending, DoesNotWriteOverWhatIsStillRead) {
  begin();
  if (IsSkipped()) return;
  std::vector<Tensor> held, wanted;
  const void* freed = nullptr;
  for (int i = 0; i < 12; ++i) {
    wanted.push_back(pattern(DType::kFloat32, 100'000, i));
    held.push_back(passed(wanted.back()));
    EXPECT_TRUE(held.back().borrowed());
    for (int j = 0; j <= i; ++j)
      expect_equal(held[static_cast<size_t>(j)], wanted[static_cast<size_t>(j)]);
  }
  freed = held[3].raw();
  held[3] = Tensor();
  const Tensor again = passed(wanted[3]);
  EXPECT_EQ(again.raw(), freed);  // memory that was given back is lent again
  expect_equal(again, wanted[3]);
  expect_equal(held[2], wanted[2]);
}

TEST_F(Lending, LeavesWhatIsReadToABorrowerWhoseLenderIsGone) {
  begin();
  if (IsSkipped()) return;
  const Tensor value = pattern(DType::kFloat32, 300'000, 1);
  const Tensor got = passed(value);
  Receive late;
  EXPECT_TRUE(borrower->ask({1, "never"}, late.context(), Done(late, 0)));
  lender->close();
  lender.reset();
  EXPECT_FALSE(borrower->hear());
  borrower->close(std::make_exception_ptr(Error(Code::kUnavailable, "lost")));
  EXPECT_EQ(late.text(), "Unavailable: lost");
  borrower.reset();
  expect_equal(got, value);
}

TEST_F(Lending, FreesWhatABorrowerThatIsGoneHad) {
  begin();
  if (IsSkipped()) return;
  const int64_t before = Segment::created_bytes();
  {
    const Tensor got = passed(pattern(DType::kFloat32, 1'000'000, 1));
    EXPECT_GE(Segment::created_bytes(), before + 4'000'000);
    lender->close();
    lender.reset();
    EXPECT_EQ(Segment::created_bytes(), before);
  }
}

TEST_F(Lending, TellsErrorsAndForgets) {
  begin();
  if (IsSkipped()) return;
  Receive one, two;
  EXPECT_TRUE(borrower->ask({1, "a"}, one.context(), Done(one, 0)));
  EXPECT_TRUE(borrower->ask({1, "b"}, two.context(), Done(two, 0)));
  turn();
  one.token.cancel(Code::kCancelled, "enough");
  EXPECT_TRUE(one.done);
  turn();
  source.values.send("a", Tensor::scalar(1.0f));  // nobody takes it: it waits
  EXPECT_FALSE(source.values.idle());
  source.values.abort(std::make_exception_ptr(Error(Code::kOutOfRange, "[Op node \"n\"] bad")));
  turn();
  EXPECT_EQ(two.text(), "OutOfRange: [Op node \"n\"] bad");
  Receive none;
  none.token.cancel(Code::kDeadlineExceeded, "too late");
  EXPECT_EQ(error_of([&] {
              borrower->ask({1, "c"}, none.context(), Done(none, 0));
            }),
            "DeadlineExceeded: too late");
}

TEST_F(Lending, SendsElsewhereWhatItHasNoMemoryFor) {
  begin(100'000);
  if (IsSkipped()) return;
  const Tensor small = pattern(DType::kFloat32, 100, 1);
  expect_equal(passed(small), small);
  Receive large;
  EXPECT_TRUE(borrower->ask({1, "key"}, large.context(), Done(large, 0)));
  source.values.send("key", pattern(DType::kFloat32, 100'000, 2));
  EXPECT_TRUE(lender->hear());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(source.again.size(), 1u);
  EXPECT_EQ(source.again.begin()->first, "key#2");
  EXPECT_TRUE(borrower->hear());
  // For a while it is not asked: for a second, which this machine may have taken for these lines.
  Receive next;
  const bool asked = borrower->ask({1, "key"}, next.context(), Done(next, 0));
  EXPECT_TRUE(!asked || std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(900));
  if (asked) next.token.cancel(Code::kCancelled, "enough");
  large.token.cancel(Code::kCancelled, "enough");
  for (int i = 0; i < 500 && !large.done; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(large.done);
}

TEST_F(Lending, RefusesAnotherVersionAndWhatIsNoRequest) {
  for (const std::string& packet :
       {write_packet(PacketKind::kHello, 0, "another"), write_packet(PacketKind::kAsk, 1, ""),
        write_packet(static_cast<PacketKind>(77), 1, ""), std::string("x")}) {
    auto [ours, theirs] = connected();
    Lender::Options options;
    options.hello = "hello";
    const auto one = std::make_shared<Lender>(source, std::move(ours), event, options);
    ASSERT_TRUE(theirs.send(std::as_bytes(std::span(packet))));
    EXPECT_NE(error_of([&] { one->hear(); }), "no error");
  }
}

// What a lender might say that is not true.
TEST_F(Lending, BelievesNoLender) {
  peer = nobody();
  if (peer == nullptr) GTEST_SKIP() << "no gRPC";
  const auto lent = [](uint64_t offset, uint64_t bytes, uint32_t segment, int64_t elements) {
    return write_lent({{offset, bytes, segment, 0}, {DType::kFloat32, Shape({elements})}});
  };
  const std::vector<std::string> bodies = {lent(64, 400, 1, 100),
                                           lent(0, 400, 0, 100),
                                           lent(8, 400, 0, 100),
                                           lent(64, 401, 0, 100),
                                           lent(64, 400, 0, 101),
                                           lent(65536, 400, 0, 100),
                                           lent(64, 65536, 0, 16384),
                                           lent(~uint64_t{63}, 400, 0, 100),
                                           "\xff\xff",
                                           ""};
  for (const std::string& body : bodies) {
    auto [ours, theirs] = connected();
    Borrower one(*peer, std::move(theirs), event, "hello");
    const IntrusivePtr<Segment> segment = Segment::create(65536);
    const std::string made = write_packet(PacketKind::kSegment, 0, "");
    ASSERT_TRUE(ours.send(std::as_bytes(std::span(made)), segment->fd()));
    ASSERT_TRUE(one.hear());
    const std::string packet = write_packet(PacketKind::kLent, 1, body);
    ASSERT_TRUE(ours.send(std::as_bytes(std::span(packet))));
    EXPECT_TRUE(error_of([&] { one.hear(); }).starts_with("InvalidArgument: "));
  }
  auto [ours, theirs] = connected();
  Borrower one(*peer, std::move(theirs), event, "hello");
  const int open = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(open, 65536), 0);
  const std::string made = write_packet(PacketKind::kSegment, 0, "");
  ASSERT_TRUE(ours.send(std::as_bytes(std::span(made)), open));
  EXPECT_NE(error_of([&] { one.hear(); }).find("not sealed"), std::string::npos);
  ::close(open);
}

TEST(LendingPool, ReusesStaysWithinItsBoundAndDropsWhatLay) {
  std::vector<uint32_t> made, dropped;
  const auto note_made = [&](uint32_t number, const IntrusivePtr<Segment>&) {
    made.push_back(number);
  };
  const auto note_dropped = [&](uint32_t number) { dropped.push_back(number); };
  LendingPool pool(8 << 20);
  const SharedBlock first = pool.allocate(3 << 20, note_made, note_dropped);
  first.release();
  EXPECT_EQ(pool.allocate(3 << 20, note_made, note_dropped).data, first.data);
  const SharedBlock second = pool.allocate(2 << 20, note_made, note_dropped);
  EXPECT_NE(error_of([&] {
              pool.allocate(6 << 20, note_made, note_dropped);
            }).find("and the limit is 8388608"),
            std::string::npos);
  EXPECT_TRUE(dropped.empty());
  second.release();
  first.release();
  pool.allocate(6 << 20, note_made, note_dropped);
  EXPECT_EQ(dropped, (std::vector<uint32_t>{0, 1}));
  EXPECT_LE(pool.bytes(), 8 << 20);
  for (int i = 0; i < 7; ++i) pool.allocate(10'000, note_made, note_dropped);
  EXPECT_EQ(made.size(), 4u);  // small blocks share a segment
}

TEST(PacketLink, KeepsWhatTheSocketDoesNotTake) {
  auto [ours, theirs] = connected();
  PacketLink from(std::move(ours)), to(std::move(theirs));
  constexpr int kPackets = 3000;
  bool waits = false;
  for (int i = 0; i < kPackets; ++i) waits = from.post(std::string(1000, 'a') + std::to_string(i));
  EXPECT_TRUE(waits);
  std::string packet;
  int passed = -1, got = 0;
  while (got < kPackets) {
    from.flush();
    while (to.receive(&packet, &passed) == LocalConnection::Received::kMessage)
      ASSERT_EQ(packet.substr(1000), std::to_string(got++));
  }
  EXPECT_FALSE(from.waits());
  EXPECT_NE(error_of([&] { from.post(std::string(PacketLink::kMostBytes + 1, 'a')); }), "no error");
}

}  // namespace
}  // namespace treenail
