// SPDX-License-Identifier: Apache-2.0
// A local connection (local_socket.h) over which packets of any size up to kMostBytes go both ways,
// in order, without anybody waiting: what the socket does not take is kept until it does. In the
// child of a fork the descriptor is closed, so that a peer hears of the end of the process that it
// talks to, whatever children that has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "framework/base/intrusive_ptr.h"
#include "framework/distributed/shared_memory/local_socket.h"
#include "framework/distributed/shared_memory/segment.h"

namespace treenail {

class PacketLink {
 public:
  static constexpr size_t kMostBytes = size_t{32} << 10;

  explicit PacketLink(LocalConnection connection);
  ~PacketLink();
  PacketLink(const PacketLink&) = delete;
  PacketLink& operator=(const PacketLink&) = delete;

  // From any thread; nothing happens where the peer is gone. `passed`: its descriptor goes along,
  // and is closed then. True: packets wait, so flush() has to be called when fd() can be written.
  // Errors: InvalidArgument for more than kMostBytes.
  bool post(std::string packet, IntrusivePtr<Segment> passed = {});
  void flush();
  bool waits() const;

  // By one thread. Never waits. *passed: a descriptor that came along, the caller's, or -1.
  LocalConnection::Received receive(std::string* packet, int* passed);
  int fd() const { return connection_.fd(); }

 private:
  struct Packet {
    std::string bytes;
    IntrusivePtr<Segment> passed;
  };
  bool send(const Packet& packet);

  LocalConnection connection_;
  std::vector<std::byte> buffer_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Packet> waiting_;
};

}  // namespace treenail
