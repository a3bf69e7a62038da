// SPDX-License-Identifier: Apache-2.0
// Segments, sockets, pools and links, with peers that lie.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "framework/base/spin.h"
#include "framework/device/allocator.h"
#include "framework/distributed/shared_memory/shared_link.h"
#include "tests/collectives/expect.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::pair<SharedLink, SharedLink> linked() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {SharedLink(LocalConnection(ends[0])), SharedLink(LocalConnection(ends[1]))};
}

TEST(Segment, KeepsItsSizeWhateverAProcessTries) {
  const IntrusivePtr<Segment> segment = Segment::create(100'000);
  EXPECT_GE(segment->bytes(), 100'000U);
  EXPECT_NE(::ftruncate(segment->fd(), 0), 0);
  EXPECT_NE(::ftruncate(segment->fd(), 1 << 24), 0);
  segment->data()[segment->bytes() - 1] = std::byte{7};
}

TEST(Segment, IsRefusedUnlessItIsSealedAndLargeEnough) {
  const int open = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(open, 65536), 0);
  EXPECT_ERROR(Segment::open(open, 65536), Code::kInvalidArgument, "not sealed against shrinking");
  const IntrusivePtr<Segment> sealed = Segment::create(65536);
  EXPECT_ERROR(Segment::open(::dup(sealed->fd()), 65537), Code::kInvalidArgument, "is smaller");
  EXPECT_ERROR(Segment::open(::open("/dev/null", O_RDWR | O_CLOEXEC), 1), Code::kInvalidArgument,
               "not sealed");
}

TEST(Segment, CountsAgainstTheMemoryLimit) {
  Allocator::host().set_limit(Allocator::host().stats().bytes_in_use + (1 << 20));
  EXPECT_ERROR(Segment::create(2 << 20), Code::kResourceExhausted, "bytes are in use");
  Allocator::host().set_limit(0);
  const int64_t before = Segment::created_bytes();
  { const IntrusivePtr<Segment> segment = Segment::create(2 << 20); }
  EXPECT_EQ(Segment::created_bytes(), before);
}

TEST(PrivateDirectory, IsThisUsersAlone) {
  const test::TemporaryDirectory around;
  const std::string path = around.path() + "/group";
  private_directory(path);
  private_directory(path);
  ::chmod(path.c_str(), 0755);
  EXPECT_ERROR(private_directory(path), Code::kPermissionDenied, "mode 0700");
  const std::string link = around.path() + "/link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_ERROR(private_directory(link), Code::kUnavailable, "no directory");
  EXPECT_ERROR(private_directory(around.path() + "/a/b"), Code::kUnavailable, "cannot be made");
}

TEST(LocalSocket, SaysWhyNobodyConnects) {
  const test::TemporaryDirectory around;
  EXPECT_ERROR(connect_local(around.path(), "0", monotonic_ns()), Code::kUnavailable,
               "does not answer");
  EXPECT_ERROR(connect_local(std::string(200, 'x'), "0", monotonic_ns()), Code::kInvalidArgument,
               "at most 107 fit");
  LocalListener listener(around.path() + "/group", "0");
  EXPECT_ERROR(listener.accept(monotonic_ns()), Code::kDeadlineExceeded, "no further process");
}

TEST(LocalSocket, TakesThePlaceOfAnEarlierProcess) {
  const test::TemporaryDirectory around;
  const std::string group = around.path() + "/group";
  private_directory(group);
  ASSERT_GE(::open((group + "/0").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), 0);
  LocalListener listener(group, "0");
  const LocalConnection caller = connect_local(group, "0", monotonic_ns() + kSecond);
  const LocalConnection called = listener.accept(monotonic_ns() + kSecond);
  EXPECT_EQ(called.peer_process(), ::getpid());
  EXPECT_EQ(caller.peer_process(), ::getpid());
}

TEST(LocalSocket, RefusesMessagesOfAnotherSize) {
  auto [a, b] = linked();
  const char text[3] = {};
  ASSERT_TRUE(a.connection().send(std::as_bytes(std::span(text))));
  SharedNote note;
  EXPECT_EQ(b.receive(&note), LocalConnection::Received::kClosed);
}

TEST(SharedPool, HandsOutWhatNobodyUses) {
  SharedPool pool;
  const SharedBlock first = pool.allocate(5000, 2);
  const SharedBlock second = pool.allocate(5000, 1);
  EXPECT_NE(first.data, second.data);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0U);
  first.release();
  EXPECT_NE(pool.allocate(5000, 1).data, first.data);
  first.release();
  EXPECT_EQ(pool.allocate(5000, 1).data, first.data);
  const SharedBlock large = pool.allocate(10 << 20, 1);
  { const IntrusivePtr<Buffer> buffer = shared_buffer(large, 10 << 20); }
  EXPECT_EQ(pool.allocate(10 << 20, 1).data, large.data);
  SharedAddress address;
  EXPECT_TRUE(pool.find(large.data + 64, 100, &address));
  EXPECT_EQ(address.segment, large.address.segment);
  EXPECT_EQ(address.offset, large.address.offset + 64);
  int local = 0;
  EXPECT_FALSE(pool.find(&local, sizeof(local), &address));
}

TEST(SharedLink, CarriesBlocksWithTheirSegments) {
  auto [a, b] = linked();
  SharedPool pool;
  for (int i = 0; i < 40; ++i) {
    const size_t bytes = size_t{1} << (i % 23);
    const SharedBlock sent = pool.allocate(bytes, 1);
    std::memset(sent.data, i, bytes);
    ASSERT_TRUE(a.send(pool, {1, static_cast<uint32_t>(i), sent.address}));
    SharedNote note;
    ASSERT_EQ(b.receive(&note), LocalConnection::Received::kMessage);
    EXPECT_EQ(note.number, static_cast<uint32_t>(i));
    const SharedBlock got = b.block(note.address);
    EXPECT_EQ(got.address.bytes, bytes);
    EXPECT_EQ(std::memcmp(got.data, sent.data, bytes), 0);
    got.release();
  }
  a = SharedLink();
  SharedNote note;
  EXPECT_EQ(b.receive(&note), LocalConnection::Received::kClosed);
}

TEST(SharedLink, RefusesWhatAPeerMakesUp) {
  auto [a, b] = linked();
  SharedPool pool;
  const SharedBlock block = pool.allocate(1000, 1);
  SharedNote note{1, 0, block.address};
  ASSERT_TRUE(a.send(pool, note));
  ASSERT_EQ(b.receive(&note), LocalConnection::Received::kMessage);
  SharedLink& receiver = b;
  const auto refused = [&](uint64_t offset, uint64_t bytes, uint32_t segment) {
    EXPECT_ERROR(receiver.block({offset, bytes, segment, 0}), Code::kInvalidArgument,
                 "has not offered");
  };
  refused(64, 1000, 1);
  refused(64, 1000, ~0U);
  refused(0, 1000, 0);
  refused(64, uint64_t{1} << 40, 0);
  refused(~uint64_t{0}, 1000, 0);
  refused(~uint64_t{0} - 500, 1000, 0);
  refused(4 << 20, 1, 0);
}

}  // namespace
}  // namespace treenail
