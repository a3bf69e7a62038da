// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/shared_memory/packet_link.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <span>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"

namespace treenail {
namespace {

// Descriptors of this process's links. Changed within a ForkBlock, so that a fork finds it whole.
class OpenLinks {
 public:
  static OpenLinks& all() {
    static std::atomic<OpenLinks*> made{nullptr};
    return made_once(made, [] {
      add_fork_hooks([] {}, close_in_child);
      return new OpenLinks;
    });
  }
  void add(int fd) {
    const ForkBlock block;
    fds_.push_back(fd);
  }
  // Whether it was there: in the child of a fork it is not.
  bool remove(int fd) {
    const ForkBlock block;
    return std::erase(fds_, fd) > 0;
  }

 private:
  static void close_in_child() {
    OpenLinks& links = all();
    const uint32_t now = fork_generation();
    if (std::exchange(links.generation_, now) == now) return;
    for (const int fd : links.fds_) ::close(fd);
    links.fds_.clear();
  }

  std::vector<int> fds_;
  uint32_t generation_ = fork_generation();
};

}  // namespace

PacketLink::PacketLink(LocalConnection connection)
    : connection_(std::move(connection)), buffer_(kMostBytes) {
  OpenLinks::all().add(connection_.fd());
}

PacketLink::~PacketLink() {
  if (!OpenLinks::all().remove(connection_.fd())) connection_.forget();
}

bool PacketLink::send(const Packet& packet) {
  const int passed = packet.passed ? packet.passed->fd() : -1;
  if (!connection_.send(std::as_bytes(std::span(packet.bytes)), passed)) {
    // Of a peer that is gone receive() tells.
    return errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != ENOMEM;
  }
  if (packet.passed) packet.passed->close_fd();
  return true;
}

bool PacketLink::post(std::string packet, IntrusivePtr<Segment> passed) {
  if (packet.size() > kMostBytes)
    throw invalid_argument("a packet of ", packet.size(), " bytes; at most ", kMostBytes, " fit");
  const std::lock_guard lock(mutex_);
  Packet made{std::move(packet), std::move(passed)};
  if (waiting_.empty() && send(made)) return false;
  waiting_.push_back(std::move(made));
  return true;
}

void PacketLink::flush() {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && send(waiting_.front())) waiting_.pop_front();
}

bool PacketLink::waits() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

LocalConnection::Received PacketLink::receive(std::string* packet, int* passed) {
  size_t bytes = 0;
  const auto got = connection_.receive_any(buffer_, &bytes, passed);
  if (got == LocalConnection::Received::kMessage)
    packet->assign(reinterpret_cast<const char*>(buffer_.data()), bytes);
  return got;
}

}  // namespace treenail
