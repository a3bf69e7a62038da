// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/shared_memory/shared_link.h"

#include <unistd.h>

namespace treenail {

bool SharedLink::offer(SharedPool& pool) {
  for (const IntrusivePtr<Segment>& segment : pool.segments_from(offered_)) {
    SharedNote note;
    note.kind = kSharedSegment;
    note.address.bytes = segment->bytes();
    if (!connection_.send(std::as_bytes(std::span(&note, 1)), segment->fd())) return false;
    ++offered_;
  }
  return true;
}

bool SharedLink::send(SharedPool& pool, const SharedNote& note) {
  return offer(pool) && connection_.send(std::as_bytes(std::span(&note, 1)));
}

LocalConnection::Received SharedLink::receive(SharedNote* note) {
  while (true) {
    int passed = -1;
    const auto got = connection_.receive(std::as_writable_bytes(std::span(note, 1)), &passed);
    if (got != LocalConnection::Received::kMessage) return got;
    if (note->kind == kSharedSegment && passed >= 0) {
      segments_.add(passed, note->address.bytes);
      continue;
    }
    if (passed >= 0) ::close(passed);
    if (note->kind != kSharedSegment) return got;
  }
}

}  // namespace treenail
