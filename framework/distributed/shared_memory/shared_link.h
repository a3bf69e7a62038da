// SPDX-License-Identifier: Apache-2.0
// One connection to a process of the same host over which blocks of shared memory are told of. It
// passes each segment of the pool once, before the first message that may speak of it, and maps
// those of the peer. For tensors from point to point:
//
//   sender:    SharedBlock block = pool.allocate(bytes, 1);   // one user: the receiver
//              copy or compute into block.data
//              link.send(kind, block.address)
//   receiver:  if (link.receive(&note) == kMessage) {
//                SharedBlock block = link.block(note.address);
//                tensor over shared_buffer(block, bytes), or a copy, and then block.release()
//              }
//
// Not thread-safe; who waits polls fd().
#pragma once

#include <cstdint>

#include "framework/distributed/shared_memory/local_socket.h"
#include "framework/distributed/shared_memory/shared_pool.h"

namespace treenail {

struct SharedNote {
  uint32_t kind = 0;  // the user's; kSharedSegment is ours
  uint32_t number = 0;
  SharedAddress address;
};
inline constexpr uint32_t kSharedSegment = 0xffffffff;

class SharedLink {
 public:
  SharedLink() = default;
  explicit SharedLink(LocalConnection connection) : connection_(std::move(connection)) {}

  // Passes what the peer lacks of the pool's segments. False where the peer is gone or does not
  // read.
  bool offer(SharedPool& pool);
  // offer(), and then the note.
  bool send(SharedPool& pool, const SharedNote& note);
  // Never waits. Segments that come first are taken on the way. Errors: InvalidArgument for a
  // segment that is not sealed.
  LocalConnection::Received receive(SharedNote* note);
  // The block at a peer's address. Errors: InvalidArgument.
  SharedBlock block(const SharedAddress& address) const { return segments_.at(address); }
  bool knows(uint32_t segment) const { return segments_.knows(segment); }

  int fd() const { return connection_.fd(); }
  const LocalConnection& connection() const { return connection_; }

 private:
  LocalConnection connection_;
  PeerSegments segments_;
  size_t offered_ = 0;
};

}  // namespace treenail
