// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/shared_meeting.h"

#include <unistd.h>

#include "build_info.h"
#include "framework/base/error.h"
#include "framework/base/hash.h"
#include "framework/base/spin.h"

namespace treenail {
namespace {

constexpr uint64_t kMagic = 0x6c69616e65657274;  // "treenail"

struct Hello {
  uint64_t magic = kMagic;
  uint64_t version = hash_text(build_info::kVersion);
  uint64_t table_bytes = 0;
  int32_t rank = 0;
  int32_t size = 0;
};

void check(const Hello& theirs, const SharedMemoryGroup& group) {
  const Hello ours;
  if (theirs.magic != ours.magic || theirs.version != ours.version) {
    throw failed_precondition(
        "a process of another version of Treenail has joined the group; all ranks need version ",
        build_info::kVersion);
  }
  if (theirs.size != group.size || theirs.rank < 0 || theirs.rank >= group.size) {
    throw invalid_argument("rank ", theirs.rank, " of ", theirs.size,
                           " has joined a group in which this is rank ", group.rank, " of ",
                           group.size);
  }
}

Hello hear(const LocalConnection& connection, int* passed, const SharedMemoryGroup& group,
           int64_t deadline) {
  Hello hello;
  const auto got =
      connection.receive_until(std::as_writable_bytes(std::span(&hello, 1)), passed, deadline);
  if (got == LocalConnection::Received::kMessage) {
    check(hello, group);
    return hello;
  }
  if (got == LocalConnection::Received::kNothing)
    throw deadline_exceeded("a process that has connected does not answer");
  throw Error(Code::kUnavailable, "a process that has connected has ended");
}

class Meeting {
 public:
  Meeting(const SharedMemoryGroup& group, size_t table_bytes)
      : group_(group), deadline_(monotonic_ns() + group.join_timeout_ns) {
    hello_.rank = group.rank;
    hello_.size = group.size;
    hello_.table_bytes = table_bytes;
    result_.links.resize(static_cast<size_t>(group.size));
    if (group.rank == 0) result_.table = Segment::create(table_bytes);
  }

  SharedMeeting run() {
    LocalListener listener(group_.directory, std::to_string(group_.rank));
    try {
      meet_all(listener);
    } catch (const Error& error) {
      if (error.code() != Code::kUnavailable && error.code() != Code::kDeadlineExceeded) throw;
      throw error.with_prefix(missing());
    }
    return std::move(result_);
  }

 private:
  void meet_all(LocalListener& listener) {
    for (int peer = 0; peer < group_.rank; ++peer) call(peer);
    for (int i = group_.rank + 1; i < group_.size; ++i) answer(listener);
    for (int peer = 0; peer < group_.rank; ++peer) await(peer);
  }

  // Which ranks are not there.
  std::string missing() const {
    std::string found;
    for (int r = 0; r < group_.size; ++r) {
      const bool here =
          r < group_.rank ? r < awaited_ : result_.links[static_cast<size_t>(r)].fd() >= 0;
      if (r != group_.rank && !here) found += concat(found.empty() ? "rank " : ", ", r);
    }
    return found + " has not joined the group: ";
  }

  void tell(const LocalConnection& connection, int passed) const {
    connection.send(std::as_bytes(std::span(&hello_, 1)), passed);
  }

  void call(int peer) {
    LocalConnection connection = connect_local(group_.directory, std::to_string(peer), deadline_);
    tell(connection, -1);
    result_.links[static_cast<size_t>(peer)] = SharedLink(std::move(connection));
  }

  void answer(LocalListener& listener) {
    LocalConnection connection = listener.accept(deadline_);
    int passed = -1;
    const Hello hello = hear(connection, &passed, group_, deadline_);
    if (passed >= 0) ::close(passed);
    SharedLink& link = result_.links[static_cast<size_t>(hello.rank)];
    if (hello.rank <= group_.rank || link.fd() >= 0)
      throw invalid_argument("two processes have joined the group as rank ", hello.rank);
    tell(connection, result_.table ? result_.table->fd() : -1);
    link = SharedLink(std::move(connection));
  }

  void await(int peer) {
    int passed = -1;
    const SharedLink& link = result_.links[static_cast<size_t>(peer)];
    const Hello hello = hear(link.connection(), &passed, group_, deadline_);
    if (peer == 0 && passed >= 0) {
      result_.table = Segment::open(passed, hello.table_bytes);
    } else if (passed >= 0) {
      ::close(passed);
    }
    if (peer == 0 && !result_.table)
      throw failed_precondition("rank 0 has not passed the group's table");
    awaited_ = peer + 1;
  }

  const SharedMemoryGroup& group_;
  const int64_t deadline_;
  Hello hello_;
  SharedMeeting result_;
  int awaited_ = 0;  // so many of the ranks before this one have answered
};

}  // namespace

SharedMeeting meet(const SharedMemoryGroup& group, size_t table_bytes) {
  return Meeting(group, table_bytes).run();
}

}  // namespace treenail
