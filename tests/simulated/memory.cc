// SPDX-License-Identifier: Apache-2.0
// A device's addresses and their view are one reservation, so that one shift serves all devices.
#include "tests/simulated/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "framework/base/error.h"
#include "tests/simulated/violation.h"
#include "tests/support/sanitizers.h"

#ifdef TREENAIL_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) (static_cast<void>(at), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) (static_cast<void>(at), static_cast<void>(bytes))
#endif

namespace treenail::simulated {
namespace {

constexpr size_t kPage = 64 << 10;  // a multiple of every system's
constexpr size_t kLarge = 1 << 20;  // from here on memory is given back to the system when freed
constexpr size_t kMostPoison = 64 << 20;  // of a block: more would cost memory that nobody uses
constexpr size_t kRemembered = 256;

constexpr size_t kMostDevices = 16;

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Where the devices' addresses begin; 0: no device yet.
std::array<std::atomic<uintptr_t>, kMostDevices> spaces = {};

uintptr_t reserve() {
  const size_t bytes = Memory::kSpace + Memory::kShift;
  void* const at =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw resource_exhausted("no addresses for the simulated devices");
  auto* const begin = static_cast<std::byte*>(at);
  if (::mprotect(begin + Memory::kShift, Memory::kSpace, PROT_READ | PROT_WRITE) != 0)
    throw resource_exhausted("no memory for the simulated devices");
  for (std::atomic<uintptr_t>& space : spaces) {
    uintptr_t none = 0;
    if (space.compare_exchange_strong(none, address(at))) return address(at);
  }
  throw resource_exhausted("there are at most ", kMostDevices, " simulated devices");
}

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

bool overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

void poison(uintptr_t at, size_t bytes) {
  std::memset(Memory::view(pointer(at)), kPoison, std::min(bytes, kMostPoison));
}

}  // namespace

bool overlaps_device(const void* at, size_t bytes) {
  return std::ranges::any_of(spaces, [&](const std::atomic<uintptr_t>& space) {
    const uintptr_t begin = space.load(std::memory_order_relaxed);
    return begin != 0 && overlap(address(at), bytes, begin, Memory::kSpace + Memory::kShift);
  });
}

Memory::Memory(std::string name, Layout layout)
    : name_(std::move(name)), layout_(layout), begin_(reserve()) {
  free_.emplace(begin_, kSpace);
}

// What a block takes up. None is empty, for each has an address of its own; none ends where another
// begins.
size_t Memory::room_for(size_t bytes) const {
  const size_t unit = layout_.alignment;
  return (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit + unit;
}

// Nobody else has the block.
void Memory::admit(uintptr_t at, size_t bytes) const {
  if (layout_.fence) {
    ASAN_POISON_MEMORY_REGION(view(pointer(at)), room_for(bytes));
    ASAN_UNPOISON_MEMORY_REGION(view(pointer(at)), bytes);
  }
  poison(at, bytes);
}

void Memory::forget(uintptr_t at, size_t bytes) const {
  if (bytes < kLarge) {
    poison(at, bytes);
  } else {
    const uintptr_t begin = (at + kPage - 1) / kPage * kPage;
    const uintptr_t end = (at + bytes) / kPage * kPage;
    ::madvise(view(pointer(begin)), end - begin, MADV_DONTNEED);
    poison(at, begin - at);
    poison(end, at + bytes - end);
  }
  if (layout_.fence) ASAN_POISON_MEMORY_REGION(view(pointer(at)), bytes);
}

void* Memory::allocate(size_t bytes) {
  uintptr_t at = 0;
  {
    const std::lock_guard lock(mutex_);
    check_limit(bytes);
    at = take(room_for(bytes));
    blocks_[at] = {bytes, false};
    std::erase_if(freed_, [&](const Range& range) {
      return overlap(range.begin, range.bytes, at, room_for(bytes));
    });
    in_use_ += static_cast<int64_t>(bytes);
    live_ += static_cast<int64_t>(bytes);
    peak_ = std::max(peak_, in_use_);
    ++calls_;
  }
  admit(at, bytes);
  return pointer(at);
}

void Memory::check_limit(size_t bytes) {
  const bool chosen = fail_in_ > 0 && --fail_in_ == 0;
  if (!chosen && bytes <= kSpace && in_use_ + static_cast<int64_t>(bytes) <= limit_) return;
  throw resource_exhausted("the simulated device ", name_, " has no memory for ", bytes,
                           " bytes: ", in_use_, " are in use, the limit is ", limit_,
                           chosen ? " (a test asked for this failure)" : "");
}

// First fit.
uintptr_t Memory::take(size_t room) {
  const auto found = std::ranges::find_if(free_, [&](const auto& it) { return it.second >= room; });
  if (found == free_.end()) {
    throw resource_exhausted("the simulated device ", name_, " has no addresses for ", room,
                             " bytes: ", in_use_, " are in use, the limit is ", limit_,
                             ", and much is still to be freed");
  }
  const auto [at, bytes] = *found;
  free_.erase(found);
  if (bytes > room) free_.emplace(at + room, bytes - room);
  return at;
}

void Memory::give_back(uintptr_t begin, size_t room) {
  const auto [at, fresh] = free_.emplace(begin, room);
  const auto next = std::next(at);
  if (next != free_.end() && next->first == begin + room) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != begin) return;
  before->second += at->second;
  free_.erase(at);
}

bool Memory::retire(const void* memory, std::optional<size_t> bytes) {
  std::string problem;
  bool found = false;
  {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address(memory));
    found = block != blocks_.end() && !block->second.retired &&
            block->second.bytes == bytes.value_or(block->second.bytes);
    if (!found) {
      problem = block != blocks_.end() && !block->second.retired
                    ? concat("whose block has ", block->second.bytes, " bytes")
                    : dead_text(address(memory));
    } else {
      if (read_by_peer(address(memory), block->second.bytes))
        problem = "which a copy to another device still reads";
      block->second.retired = true;
      in_use_ -= static_cast<int64_t>(block->second.bytes);
    }
  }
  if (!problem.empty()) {
    const std::string what = bytes.has_value() ? concat(*bytes, " bytes at ") : "the block at ";
    violation(concat("simulated device ", name_, ": deallocate frees ", what, hex(memory), ", ",
                     problem));
  }
  return found;
}

void Memory::release(const void* memory) {
  const uintptr_t at = address(memory);
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    bytes = blocks_.at(at).bytes;
  }
  forget(at, bytes);
  const std::lock_guard lock(mutex_);
  blocks_.erase(at);
  freed_.push_back({at, bytes});
  if (freed_.size() > kRemembered) freed_.pop_front();
  live_ -= static_cast<int64_t>(bytes);
  ++calls_;
  give_back(at, room_for(bytes));
}

bool Memory::usable(const char* who, Use use, const void* at, size_t bytes) const {
  if (bytes == 0) return true;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    problem = problem_of(use, address(at), bytes);
  }
  if (problem.empty()) return true;
  violation(concat("simulated device ", name_, ": ", who,
                   use == Use::kRead ? " reads " : " writes ", bytes, " bytes at ", hex(at), ", ",
                   problem));
  return false;
}

std::string Memory::problem_of(Use use, uintptr_t at, size_t bytes) const {
  if (!overlaps_device(pointer(at), 1)) return "which is host memory";
  if (at < begin_ || at - begin_ >= kSpace) return "which is no memory of this device";
  const auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return dead_text(at);
  const auto& [begin, block] = *std::prev(after);
  const size_t offset = at - begin;
  if (block.retired || offset >= std::max<size_t>(block.bytes, 1)) return dead_text(at);
  if (bytes > block.bytes - offset)
    return concat("which goes beyond the end of its block, of ", block.bytes, " bytes at ",
                  hex(pointer(begin)));
  if (use == Use::kWrite && read_by_peer(at, bytes))
    return "which a copy to another device still reads";
  return "";
}

bool Memory::contains(const void* at) const {
  return address(at) >= begin_ && address(at) - begin_ < kSpace;
}

std::string Memory::pointer_problem(const void* at) const {
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address(at));
  if (after == blocks_.begin()) return dead_text(address(at));
  const auto& [begin, block] = *std::prev(after);
  const bool inside = address(at) - begin <= std::max<size_t>(block.bytes, 1);
  return inside && !block.retired ? "" : dead_text(address(at));
}

std::string Memory::dead_text(uintptr_t at) const {
  for (const auto& [begin, block] : blocks_) {
    if (block.retired && overlap(at, 1, begin, std::max<size_t>(block.bytes, 1)))
      return concat("use after free: deallocate was called for its block, of ", block.bytes,
                    " bytes");
  }
  for (const Range& range : freed_) {
    if (overlap(at, 1, range.begin, std::max<size_t>(range.bytes, 1)))
      return concat("use after free: its block, of ", range.bytes, " bytes, was freed");
  }
  return "which is no live block";
}

bool Memory::read_by_peer(uintptr_t at, size_t bytes) const {
  return std::ranges::any_of(peer_reads_, [&](const auto& read) {
    return overlap(at, bytes, read.second.begin, read.second.bytes);
  });
}

Memory::PeerRead::PeerRead(Memory& memory, const void* at, size_t bytes) : memory_(&memory) {
  const std::lock_guard lock(memory.mutex_);
  number_ = ++memory.last_read_;
  memory.peer_reads_[number_] = {address(at), bytes};
}

Memory::PeerRead::PeerRead(PeerRead&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), number_(other.number_) {}

Memory::PeerRead::~PeerRead() {
  if (memory_ == nullptr) return;
  const std::lock_guard lock(memory_->mutex_);
  memory_->peer_reads_.erase(number_);
}

AllocatorStats Memory::stats() const {
  const std::lock_guard lock(mutex_);
  AllocatorStats stats;
  stats.bytes_in_use = in_use_;
  stats.peak_bytes = peak_;
  stats.system_calls = calls_;
  return stats;
}

int64_t Memory::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

int64_t Memory::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(blocks_.size());
}

int64_t Memory::used_blocks() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(blocks_, [](const auto& it) { return !it.second.retired; });
}

int64_t Memory::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void Memory::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes <= 0 ? kDefaultLimit : bytes;
}

void Memory::fail_allocation(int64_t nth) {
  const std::lock_guard lock(mutex_);
  fail_in_ = nth;
}

}  // namespace treenail::simulated
