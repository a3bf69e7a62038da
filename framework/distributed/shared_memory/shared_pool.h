// SPDX-License-Identifier: Apache-2.0
// Blocks of shared memory, reused: a segment per tensor would cost more in page faults than the
// copy (0.4 GB/s against 6 to 8). A block counts its users, in whatever process they are, in shared
// memory; at zero its owner may hand it out again. What a peer says of where bytes lie is checked
// against the segments that it has passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "framework/base/fork.h"
#include "framework/base/intrusive_ptr.h"
#include "framework/distributed/shared_memory/segment.h"
#include "framework/tensor/buffer.h"

namespace treenail {

// Where bytes lie, as one process tells another.
struct SharedAddress {
  uint64_t offset = 0;  // of the first byte, from the segment's beginning; never 0
  uint64_t bytes = 0;
  uint32_t segment = 0;  // number among those of its owner
  uint32_t unused = 0;
};

// Bytes in a segment that is mapped here. Copies are no further users.
struct SharedBlock {
  SharedAddress address;
  std::byte* data = nullptr;
  IntrusivePtr<Segment> segment;

  // One user of the block less, counted over all processes.
  void release() const;
  // For who owns the segment: how many there are, and that there are so many.
  uint32_t users() const;
  void set_users(uint32_t users) const;
};
// What stands before each block's bytes.
inline constexpr size_t kSharedHeader = 64;
// What a block of so many bytes takes of a segment, header included.
size_t shared_block_size(size_t bytes);

// As memory of a tensor, which is not written: its end is one user less.
IntrusivePtr<Buffer> shared_buffer(const SharedBlock& block, size_t bytes);

// The segments that this process offers.
class SharedPool {
 public:
  // At least `bytes`, aligned to 64, for `users` users who release() it each. New segments come
  // when no block is free. Errors: ResourceExhausted.
  SharedBlock allocate(size_t bytes, uint32_t users);
  // Whether these bytes lie in one of its segments, and where. Nobody becomes a user by that.
  bool find(const void* data, size_t bytes, SharedAddress* address);
  // The block at an address of its own.
  SharedBlock at(const SharedAddress& address);
  // Segments from number `first` on: what a peer that knows the earlier ones must be passed.
  std::vector<IntrusivePtr<Segment>> segments_from(size_t first);

 private:
  struct Block {
    uint64_t offset;
    uint32_t segment;
  };
  SharedBlock block_at(const Block& block, size_t bytes) const;
  Block carve(size_t bytes);

  ForkMutex mutex_;
  std::vector<IntrusivePtr<Segment>> segments_;
  std::map<size_t, std::vector<Block>> blocks_;  // by size class; never given back
  uint32_t open_segment_ = 0;                    // where small blocks are cut from
  size_t open_offset_ = 0;
  bool has_open_ = false;
};

// The segments of one peer.
class PeerSegments {
 public:
  // The next one. Takes `fd`. Errors: as of Segment::open().
  void add(int fd, size_t bytes) { segments_.push_back(Segment::open(fd, bytes)); }
  bool knows(uint32_t segment) const { return segment < segments_.size(); }
  // Errors: InvalidArgument where the address lies outside.
  SharedBlock at(const SharedAddress& address) const;

 private:
  std::vector<IntrusivePtr<Segment>> segments_;
};

}  // namespace treenail
