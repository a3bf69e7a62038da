// SPDX-License-Identifier: Apache-2.0
// The memory of a simulated device. Its addresses are reserved and never accessible, so that the
// host faults where it touches them; the bytes lie in a second view, a constant shift away, which
// only the device's own copies and kernels use. Who asks for something on the device names ranges
// of addresses, and each must lie in one live block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "framework/device/allocator.h"

namespace treenail::simulated {

inline constexpr int kDevices = 2;
inline constexpr unsigned char kPoison = 0xa5;  // of memory that holds no value

// Of any simulated device, or the view behind it: no address that the host may name.
bool overlaps_device(const void* at, size_t bytes);

enum class Use : uint8_t { kRead, kWrite };

class Memory {
 public:
  // What blocks are apart: their addresses are multiples of `alignment`, a power of two. `fence`:
  // for AddressSanitizer what is no live block is no memory, in the view either.
  struct Layout {
    size_t alignment = 64;
    bool fence = false;
  };
  // `name`: "SIM:0".
  explicit Memory(std::string name) : Memory(std::move(name), Layout()) {}
  Memory(std::string name, Layout layout);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // As Device::allocate(), poisoned. Memory that was retired counts as free: what is queued from
  // now on comes after what frees it.
  void* allocate(size_t bytes);
  // From now on nobody may ask for anything on the block. False, with a violation, for no block.
  // `bytes`: what the block has, where whoever frees it says so.
  bool retire(const void* memory, std::optional<size_t> bytes);
  // The queue is past what used a retired block.
  void release(const void* memory);

  // Whether the range lies in one live block, and nobody else reads what is to be written; a
  // violation if not. `who`: "copy_in" of the text.
  bool usable(const char* who, Use use, const void* at, size_t bytes) const;
  // "", or what is wrong with a pointer into this device: it may be where a live block ends, too.
  std::string pointer_problem(const void* at) const;
  // Whether it is one of this device's addresses, of whatever block.
  bool contains(const void* at) const;

  // Where the bytes behind an address of the device are.
  template <class T>
  static T* view(T* at) {
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(at) + kShift);
  }

  // While one is alive, a copy to another device that the range was given to is not done.
  class PeerRead {
   public:
    PeerRead(Memory& memory, const void* at, size_t bytes);
    ~PeerRead();
    PeerRead(PeerRead&& other) noexcept;
    PeerRead& operator=(PeerRead&&) = delete;

   private:
    Memory* memory_;
    int64_t number_;
  };

  AllocatorStats stats() const;
  int64_t live_bytes() const;   // not released
  int64_t live_blocks() const;  // the same
  int64_t used_blocks() const;  // not retired
  int64_t limit() const;
  void set_limit(int64_t bytes);  // <= 0: the default
  void fail_allocation(int64_t nth);

  static constexpr size_t kSpace = size_t{8} << 30;  // addresses of a device
  static constexpr size_t kShift = kSpace;           // the views follow them
  static constexpr int64_t kDefaultLimit = int64_t{3} << 30;

 private:
  struct Block {
    size_t bytes = 0;  // asked for
    bool retired = false;
  };
  struct Range {
    uintptr_t begin = 0;
    size_t bytes = 0;
  };
  // The mutex is held by the callers of these.
  void check_limit(size_t bytes);
  size_t room_for(size_t bytes) const;
  void admit(uintptr_t at, size_t bytes) const;
  void forget(uintptr_t at, size_t bytes) const;
  uintptr_t take(size_t room);
  void give_back(uintptr_t begin, size_t room);
  std::string problem_of(Use use, uintptr_t at, size_t bytes) const;
  std::string dead_text(uintptr_t at) const;
  bool read_by_peer(uintptr_t at, size_t bytes) const;

  const std::string name_;
  const Layout layout_;
  const uintptr_t begin_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> free_;  // ranges, none next to another
  std::map<uintptr_t, Block> blocks_;
  std::deque<Range> freed_;  // the last ones, for texts
  std::map<int64_t, Range> peer_reads_;
  int64_t last_read_ = 0;
  int64_t limit_ = kDefaultLimit;
  int64_t in_use_ = 0;  // not retired
  int64_t live_ = 0;    // not released
  int64_t peak_ = 0, calls_ = 0;
  int64_t fail_in_ = 0;
};

}  // namespace treenail::simulated
