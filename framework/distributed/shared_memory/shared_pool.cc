// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/shared_memory/shared_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr size_t kSmallest = 4096;            // with the header
constexpr size_t kSegment = size_t{4} << 20;  // for blocks of at most an eighth of that
constexpr size_t kOwnSegment = kSegment / 8;  // from here on a block has a segment of its own

struct BlockSharedHeader {
  std::atomic<uint32_t> users;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(BlockSharedHeader) <= kSharedHeader);

BlockSharedHeader& header_of(const SharedBlock& block) {
  return *reinterpret_cast<BlockSharedHeader*>(block.data - kSharedHeader);
}

struct Loan {
  SharedBlock block;
  uint32_t generation;
};

void end_loan(void* argument) {
  auto* const loan = static_cast<Loan*>(argument);
  // A child of fork() has the parent's mapping, but was never counted.
  if (loan->generation == fork_generation()) loan->block.release();
  delete loan;
}

}  // namespace

void SharedBlock::release() const {
  header_of(*this).users.fetch_sub(1, std::memory_order_release);
}

uint32_t SharedBlock::users() const {
  return header_of(*this).users.load(std::memory_order_acquire);
}

void SharedBlock::set_users(uint32_t users) const {
  header_of(*this).users.store(users, std::memory_order_relaxed);
}

// Steps of an eighth: at most 12.5 % is lost.
size_t shared_block_size(size_t bytes) {
  const size_t whole = std::max(bytes + kSharedHeader, kSmallest);
  const size_t step = std::max(std::bit_floor(whole) / 8, kSharedHeader);
  return (whole + step - 1) / step * step;
}

IntrusivePtr<Buffer> shared_buffer(const SharedBlock& block, size_t bytes) {
  return Buffer::borrow(block.data, bytes, end_loan, new Loan{block, fork_generation()});
}

SharedBlock SharedPool::block_at(const Block& block, size_t bytes) const {
  const IntrusivePtr<Segment>& segment = segments_[block.segment];
  return {{block.offset, bytes, block.segment, 0}, segment->data() + block.offset, segment};
}

SharedPool::Block SharedPool::carve(size_t bytes) {
  const bool own = bytes >= kOwnSegment;
  if (!own && has_open_ && open_offset_ + bytes <= segments_[open_segment_]->bytes()) {
    const Block block{open_offset_ + kSharedHeader, open_segment_};
    open_offset_ += bytes;
    return block;
  }
  segments_.push_back(Segment::create(own ? bytes : kSegment));
  const auto number = static_cast<uint32_t>(segments_.size() - 1);
  if (!own) {
    has_open_ = true;
    open_segment_ = number;
    open_offset_ = bytes;
  }
  return {kSharedHeader, number};
}

SharedBlock SharedPool::allocate(size_t bytes, uint32_t users) {
  const size_t needed = shared_block_size(bytes);
  const std::unique_lock lock(mutex_);
  std::vector<Block>& known = blocks_[needed];
  for (const Block& block : known) {
    const SharedBlock found = block_at(block, bytes);
    if (found.users() != 0) continue;
    found.set_users(users);
    return found;
  }
  known.push_back(carve(needed));
  const SharedBlock fresh = block_at(known.back(), bytes);
  fresh.set_users(users);
  return fresh;
}

SharedBlock SharedPool::at(const SharedAddress& address) {
  const std::unique_lock lock(mutex_);
  return block_at({address.offset, address.segment}, address.bytes);
}

bool SharedPool::find(const void* data, size_t bytes, SharedAddress* address) {
  const auto* const at = static_cast<const std::byte*>(data);
  const std::unique_lock lock(mutex_);
  for (size_t i = 0; i < segments_.size(); ++i) {
    const IntrusivePtr<Segment>& segment = segments_[i];
    if (at < segment->data() || at + bytes > segment->data() + segment->bytes()) continue;
    *address = {static_cast<uint64_t>(at - segment->data()), bytes, static_cast<uint32_t>(i), 0};
    return true;
  }
  return false;
}

std::vector<IntrusivePtr<Segment>> SharedPool::segments_from(size_t first) {
  const std::unique_lock lock(mutex_);
  return {segments_.begin() + static_cast<std::ptrdiff_t>(std::min(first, segments_.size())),
          segments_.end()};
}

SharedBlock PeerSegments::at(const SharedAddress& address) const {
  if (knows(address.segment)) {
    const IntrusivePtr<Segment>& segment = segments_[address.segment];
    if (address.offset >= kSharedHeader && address.offset <= segment->bytes() &&
        address.bytes <= segment->bytes() - address.offset)
      return {address, segment->data() + address.offset, segment};
  }
  throw invalid_argument("a peer speaks of ", address.bytes, " bytes at ", address.offset,
                         " of its segment ", address.segment, ", which it has not offered");
}

}  // namespace treenail
