// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/shared_memory/lending_pool.h"

#include <atomic>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/device/allocator.h"

namespace treenail {
namespace {

constexpr size_t kSegment = size_t{1} << 20;  // for blocks of at most an eighth of that
constexpr size_t kOwnSegment = kSegment / 8;  // larger ones have a segment each

std::atomic<int64_t> lent{0};  // by all pools

}  // namespace

int64_t most_lent_bytes() {
  return env_bytes("TREENAIL_SHARED_MEMORY_LIMIT").value_or(Allocator::host().limit() / 4);
}

LendingPool::~LendingPool() { lent -= bytes_; }

int64_t LendingPool::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

SharedBlock LendingPool::block_at(const Block& block, size_t bytes) const {
  const IntrusivePtr<Segment>& segment = segments_.at(block.segment);
  return {{block.offset, bytes, block.segment, 0}, segment->data() + block.offset, segment};
}

SharedBlock LendingPool::allocate(size_t bytes, Made made, Dropped dropped) {
  const size_t size = shared_block_size(bytes);
  const std::lock_guard lock(mutex_);
  ++allocations_;
  for (Block& block : blocks_[size]) {
    const SharedBlock found = block_at(block, bytes);
    if (found.users() != 0) continue;
    found.set_users(1);
    block.used = allocations_;
    return found;
  }
  const Block fresh = carve(size, made, dropped);
  blocks_[size].push_back(fresh);
  const SharedBlock block = block_at(fresh, bytes);
  block.set_users(1);
  return block;
}

LendingPool::Block LendingPool::carve(size_t size, Made made, Dropped dropped) {
  if (size > kOwnSegment) return {kSharedHeader, add_segment(size, made, dropped), allocations_};
  if (!has_open_ || open_offset_ + size > segments_.at(open_segment_)->bytes()) {
    open_segment_ = add_segment(kSegment, made, dropped);
    open_offset_ = 0;
    has_open_ = true;
  }
  const Block block{open_offset_ + kSharedHeader, open_segment_, allocations_};
  open_offset_ += size;
  return block;
}

uint32_t LendingPool::add_segment(size_t bytes, Made made, Dropped dropped) {
  const auto wanted = static_cast<int64_t>(bytes);
  while (lent.load() + wanted > most_bytes_) {
    if (drop_oldest(dropped)) continue;
    throw resource_exhausted("a peer is to be lent ", bytes, " bytes of shared memory; ",
                             lent.load(), " bytes are lent, and the limit is ", most_bytes_,
                             " (TREENAIL_SHARED_MEMORY_LIMIT)");
  }
  const IntrusivePtr<Segment> segment = create(bytes, dropped);
  const uint32_t number = next_segment_++;
  segments_.emplace(number, segment);
  bytes_ += static_cast<int64_t>(segment->bytes());
  lent += static_cast<int64_t>(segment->bytes());
  made(number, segment);
  return number;
}

// What this process or its control group may have may be taken by segments that nobody uses.
IntrusivePtr<Segment> LendingPool::create(size_t bytes, Dropped dropped) {
  while (true) {
    try {
      return Segment::create(bytes);
    } catch (const Error&) {
      if (!drop_oldest(dropped)) throw;
    }
  }
}

// Of the segments of one block, which nobody uses. Whether there was one.
bool LendingPool::drop_oldest(Dropped dropped) {
  std::vector<Block>* among = nullptr;
  size_t oldest = 0;
  for (auto& [size, blocks] : blocks_) {
    if (size <= kOwnSegment) continue;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (among != nullptr && blocks[i].used >= (*among)[oldest].used) continue;
      if (block_at(blocks[i], 0).users() != 0) continue;
      among = &blocks;
      oldest = i;
    }
  }
  if (among == nullptr) return false;
  const uint32_t number = (*among)[oldest].segment;
  among->erase(among->begin() + static_cast<std::ptrdiff_t>(oldest));
  const auto freed = static_cast<int64_t>(segments_.at(number)->bytes());
  segments_.erase(number);
  bytes_ -= freed;
  lent -= freed;
  dropped(number);
  return true;
}

}  // namespace treenail
