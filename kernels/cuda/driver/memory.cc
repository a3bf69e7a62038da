// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/memory.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "framework/base/error.h"

namespace treenail::cuda {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kFirstRegion = size_t{2} << 20;
constexpr size_t kLargestGrowth = size_t{1} << 30;  // beyond, regions are no larger than needed
constexpr size_t kLargestShown = 5;

constexpr size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::string size_text(int64_t bytes) {
  if (bytes >= int64_t{1} << 30) return concat((bytes * 10 >> 30) / 10.0, " GiB");
  if (bytes >= int64_t{1} << 20) return concat((bytes * 10 >> 20) / 10.0, " MiB");
  return concat(bytes, " bytes");
}

}  // namespace

Memory::Memory(std::string name, Source source, int64_t limit)
    : name_(std::move(name)), source_(source), limit_(limit), next_region_(kFirstRegion) {}

void* Memory::allocate(size_t bytes) {
  if (bytes > size_t{1} << 60) throw resource_exhausted(name_, ": ", bytes, " bytes are no size");
  const size_t asked = std::max<size_t>(bytes, 1), room = rounded(asked, kAlignment);
  const std::lock_guard lock(mutex_);
  if (void* const memory = place(room, asked)) return memory;
  if (add_region(room)) return place(room, asked);
  if (release() > 0 && add_region(room)) return place(room, asked);
  throw resource_exhausted(name_, ": out of memory: ", size_text(static_cast<int64_t>(bytes)),
                           " asked for, ", size_text(in_use_), " in use, ",
                           size_text(reserved_ - in_use_), " free in pieces that are too small",
                           limit_ > 0 ? concat(", limit ", size_text(limit_)) : "",
                           "; the largest blocks in use: ", largest());
}

void* Memory::place(size_t bytes, size_t asked) {
  const auto found = free_.lower_bound({bytes, nullptr});
  if (found == free_.end()) return nullptr;
  std::byte* const at = found->second;
  free_.erase(found);
  Block& block = blocks_.at(at);
  if (block.bytes > bytes) {
    blocks_.emplace(at + bytes, Block{block.bytes - bytes, 0, block.region});
    free_.emplace(block.bytes - bytes, at + bytes);
    block.bytes = bytes;
  }
  block.asked = asked;
  in_use_ += static_cast<int64_t>(bytes);
  peak_ = std::max(peak_, in_use_);
  return at;
}

// Large enough for `bytes`: as much as is due, or, where that is too much, no more than needed.
bool Memory::add_region(size_t bytes) {
  const size_t needed = rounded(bytes, kFirstRegion);
  for (const size_t size : {std::max(next_region_, needed), needed}) {
    if (limit_ > 0 && reserved_ + static_cast<int64_t>(size) > limit_) continue;
    ++calls_;
    void* const region = source_.take(source_.owner, size);
    if (region == nullptr) continue;
    auto* const at = static_cast<std::byte*>(region);
    regions_[region] = size;
    blocks_[at] = {size, 0, region};
    free_.emplace(size, at);
    reserved_ += static_cast<int64_t>(size);
    next_region_ = std::min(next_region_ * 2, kLargestGrowth);
    return true;
  }
  return false;
}

void Memory::deallocate(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  auto block = blocks_.find(static_cast<std::byte*>(memory));
  in_use_ -= static_cast<int64_t>(block->second.bytes);
  block->second.asked = 0;
  join_next(block);
  if (block != blocks_.begin()) {
    const auto before = std::prev(block);
    if (before->second.asked == 0 && before->second.region == block->second.region) {
      free_.erase({before->second.bytes, before->first});
      join_next(before);
      block = before;
    }
  }
  free_.emplace(block->second.bytes, block->first);
}

// Takes in the block behind it, where that is free and of the same region; it may be the block
// that is being freed, which is in no list yet.
void Memory::join_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || next->second.asked != 0 ||
      next->second.region != block->second.region)
    return;
  free_.erase({next->second.bytes, next->first});
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
}

size_t Memory::release() {
  size_t given = 0;
  for (auto region = regions_.begin(); region != regions_.end();) {
    auto* const at = static_cast<std::byte*>(region->first);
    const Block& first = blocks_.at(at);
    if (first.asked != 0 || first.bytes != region->second) {
      ++region;
      continue;
    }
    free_.erase({first.bytes, at});
    blocks_.erase(at);
    ++calls_;
    source_.give_back(source_.owner, at);
    given += region->second;
    region = regions_.erase(region);
  }
  reserved_ -= static_cast<int64_t>(given);
  return given;
}

void Memory::release_unused() {
  const std::lock_guard lock(mutex_);
  release();
}

std::string Memory::largest() const {
  std::vector<size_t> sizes;
  for (const auto& [at, block] : blocks_) {
    if (block.asked != 0) sizes.push_back(block.asked);
  }
  std::ranges::sort(sizes, std::greater<>());
  std::string text;
  for (size_t i = 0; i < std::min(sizes.size(), kLargestShown); ++i)
    text += concat(i == 0 ? "" : ", ", size_text(static_cast<int64_t>(sizes[i])));
  return text.empty() ? "none" : text;
}

AllocatorStats Memory::stats() const {
  const std::lock_guard lock(mutex_);
  return {in_use_, reserved_ - in_use_, peak_, calls_};
}

}  // namespace treenail::cuda
