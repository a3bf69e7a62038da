// SPDX-License-Identifier: Apache-2.0
// The caching allocator. A request takes a block of its class from the thread's own cache (small
// ones), else from the shared one, else from the system; a freed block goes back the same way, and
// no further: steady work makes no system call. Free blocks are linked through their first word.
// Caches shrink when memory is short, and when large blocks that nobody asks for again pile up
// beyond the highest use.
//
// Invariant: every block taken from the system is in use or in one cache, so cached = taken - in
// use.
#include "framework/device/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/system_limits.h"
#include "framework/device/size_classes.h"

#if defined(__SANITIZE_ADDRESS__)
#define TREENAIL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TREENAIL_ASAN 1
#endif
#endif
#if defined(TREENAIL_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace treenail {
namespace {

using size_classes::index_of;
using size_classes::kClasses;
using size_classes::kHugePage;
using size_classes::kLargest;
using size_classes::kLargestMedium;
using size_classes::kMediumEnd;
using size_classes::kSmallEnd;
using size_classes::size_of;

constexpr size_t kAlignment = 64;
constexpr int64_t kAlwaysCached = int64_t{64}
                                  << 20;  // this much may lie in the caches whatever the use

struct FreeBlock {
  FreeBlock* next;
};

// AddressSanitizer sees cached blocks, and the rounding behind a request, as freed memory.
void mark_free([[maybe_unused]] void* block, [[maybe_unused]] size_t size) {
#if defined(TREENAIL_ASAN)
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + sizeof(FreeBlock),
                            size - sizeof(FreeBlock));
#endif
}
void mark_used([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes,
               [[maybe_unused]] size_t size) {
#if defined(TREENAIL_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + bytes, size - bytes);
#endif
}
void mark_system([[maybe_unused]] void* block, [[maybe_unused]] size_t size) {
#if defined(TREENAIL_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(block, size);
#endif
}

struct FreeList {
  FreeBlock* head = nullptr;
  uint32_t count = 0;

  void push(void* block) {
    auto* free_block = static_cast<FreeBlock*>(block);
    free_block->next = head;
    head = free_block;
    ++count;
  }
  void* pop() {
    FreeBlock* block = head;
    if (block != nullptr) {
      head = block->next;
      --count;
    }
    return block;
  }
  void move_to(FreeList* other, uint32_t blocks) {
    for (; blocks > 0 && head != nullptr; --blocks) other->push(pop());
  }
};

// Blocks of one class a thread keeps: 64 KiB worth, but a few of each.
constexpr uint32_t thread_capacity(int index) {
  return static_cast<uint32_t>(std::clamp<size_t>((size_t{64} << 10) / size_of(index), 4, 64));
}

struct ThreadCache {
  FreeList lists[kSmallEnd];
};

// Plain data, so that reaching it needs no initialisation check. `ended`: the thread's destructors
// have run, and whatever frees or allocates after them goes to the shared cache.
struct ThreadState {
  ThreadCache* cache;
  bool ended;
};
thread_local ThreadState thread_state = {nullptr, false};

void* map_huge(size_t size) {
  const size_t with_slack = size + kHugePage;
  void* mapped =
      ::mmap(nullptr, with_slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (address + kHugePage - 1) & ~(uintptr_t{kHugePage} - 1);
  if (aligned > address) ::munmap(mapped, aligned - address);
  const size_t tail = kHugePage - (aligned - address);
  if (tail > 0) ::munmap(reinterpret_cast<void*>(aligned + size), tail);
  void* block = reinterpret_cast<void*>(aligned);
  // Refused where huge pages are switched off: small pages serve, too.
  static_cast<void>(::madvise(block, size, MADV_HUGEPAGE));
  return block;
}

void* take_from_system(int index) {
  const size_t size = size_of(index);
  return index < kMediumEnd ? std::aligned_alloc(kAlignment, size) : map_huge(size);
}

void give_to_system(void* block, int index) {
  mark_system(block, size_of(index));
  if (index < kMediumEnd) {
    std::free(block);
  } else {
    ::munmap(block, size_of(index));
  }
}

int64_t default_limit() {
  if (const auto asked = env_bytes("TREENAIL_MEMORY_LIMIT")) return *asked;
  int64_t memory = physical_memory();
  const int64_t group = read_cgroup_limits().memory_bytes;
  if (group > 0 && (memory == 0 || group < memory)) memory = group;
  return memory == 0 ? std::numeric_limits<int64_t>::max() : memory / 100 * 95;
}

}  // namespace

struct Allocator::Impl {
  const int64_t usual_limit = default_limit();
  std::atomic<int64_t> limit{usual_limit};
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> taken{0};  // from the system: in use or cached
  std::atomic<int64_t> system_calls{0};
  std::mutex mutex;
  FreeList shared[kClasses];  // guarded by mutex

  // --- accounting ---

  [[noreturn]] void refuse(size_t bytes, const char* why) const {
    throw resource_exhausted("out of memory: ", bytes, " bytes asked, ",
                             in_use.load(std::memory_order_relaxed), " in use, limit ",
                             limit.load(std::memory_order_relaxed), why);
  }

  void count_in(size_t bytes, size_t size) {
    const auto added = static_cast<int64_t>(size);
    const int64_t now = in_use.fetch_add(added, std::memory_order_relaxed) + added;
    if (now > limit.load(std::memory_order_relaxed)) {
      in_use.fetch_sub(added, std::memory_order_relaxed);
      refuse(bytes, " (TREENAIL_MEMORY_LIMIT raises it)");
    }
    int64_t highest = peak.load(std::memory_order_relaxed);
    while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
    }
  }

  void count_out(size_t size) {
    in_use.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  }

  int64_t cached() const {
    return std::max<int64_t>(
        0, taken.load(std::memory_order_relaxed) - in_use.load(std::memory_order_relaxed));
  }

  // --- shared cache and system ---

  void* pop_shared(int index) {
    std::lock_guard lock(mutex);
    return shared[index].pop();
  }

  void push_shared(void* block, int index) {
    std::lock_guard lock(mutex);
    shared[index].push(block);
  }

  void* take(int index) {
    void* block = take_from_system(index);
    system_calls.fetch_add(1, std::memory_order_relaxed);
    if (block != nullptr) {
      taken.fetch_add(static_cast<int64_t>(size_of(index)), std::memory_order_relaxed);
    }
    return block;
  }

  // A block nobody has used yet. The request is already counted as in use. Null: the system
  // refused.
  void* fresh(int index) {
    const int64_t after =
        taken.load(std::memory_order_relaxed) + static_cast<int64_t>(size_of(index));
    const int64_t idle = after - in_use.load(std::memory_order_relaxed);
    const bool too_much = after > limit.load(std::memory_order_relaxed);
    const bool piled_up =
        index >= kMediumEnd && idle > std::max(kAlwaysCached, peak.load(std::memory_order_relaxed));
    if (too_much || piled_up) release();
    void* block = take(index);
    if (block == nullptr) {
      release();
      block = take(index);
    }
    return block;
  }

  void release() {
    if (thread_state.cache != nullptr) drain(thread_state.cache);
    FreeList lists[kClasses];
    {
      std::lock_guard lock(mutex);
      for (int i = 0; i < kClasses; ++i) std::swap(lists[i], shared[i]);
    }
    for (int i = 0; i < kClasses; ++i) {
      for (void* block; (block = lists[i].pop()) != nullptr;) {
        give_to_system(block, i);
        taken.fetch_sub(static_cast<int64_t>(size_of(i)), std::memory_order_relaxed);
        system_calls.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }

  // --- the thread's cache ---

  void drain(ThreadCache* cache) {
    std::lock_guard lock(mutex);
    for (int i = 0; i < kSmallEnd; ++i) cache->lists[i].move_to(&shared[i], cache->lists[i].count);
  }

  struct AtThreadEnd {
    ~AtThreadEnd() {
      ThreadCache* cache = thread_state.cache;
      thread_state = {nullptr, true};
      Allocator::host().impl_->drain(cache);
      delete cache;
    }
  };

  // The calling thread's cache; null when the thread is ending or memory is too short for one.
  ThreadCache* thread_cache() {
    ThreadState& state = thread_state;
    if (state.cache != nullptr || state.ended) return state.cache;
    state.cache = new (std::nothrow) ThreadCache;
    if (state.cache != nullptr) {
      thread_local AtThreadEnd at_end;
      static_cast<void>(at_end);
    }
    return state.cache;
  }

  void* refill(FreeList* list, int index) {
    std::lock_guard lock(mutex);
    shared[index].move_to(list, thread_capacity(index) / 2);
    return list->pop();
  }

  void spill(FreeList* list, int index) {
    std::lock_guard lock(mutex);
    list->move_to(&shared[index], thread_capacity(index) / 2);
  }

  void* cached_block(int index) {
    ThreadCache* cache = index < kSmallEnd ? thread_cache() : nullptr;
    if (cache == nullptr) return pop_shared(index);
    FreeList& list = cache->lists[index];
    if (void* block = list.pop()) return block;
    return refill(&list, index);
  }

  void keep(void* block, int index) {
    ThreadCache* cache = index < kSmallEnd ? thread_cache() : nullptr;
    if (cache == nullptr) {
      push_shared(block, index);
      return;
    }
    FreeList& list = cache->lists[index];
    list.push(block);
    if (list.count > thread_capacity(index)) spill(&list, index);
  }
};

Allocator::Allocator() : impl_(new Impl) {}

Allocator& Allocator::host() {
  static Allocator* allocator = [] {
    auto* made = new Allocator;
    // A child forked while another thread holds the mutex would wait for it forever.
    static Impl* impl = made->impl_;
    add_fork_hooks([] { impl->mutex.lock(); }, [] { impl->mutex.unlock(); });
    return made;
  }();
  return *allocator;
}

void* Allocator::allocate(size_t bytes) {
  if (bytes > kLargest) impl_->refuse(bytes, "");
  const int index = index_of(bytes);
  const size_t size = size_of(index);
  impl_->count_in(bytes, size);
  void* block = impl_->cached_block(index);
  if (block == nullptr) block = impl_->fresh(index);
  if (block == nullptr) {
    impl_->count_out(size);
    impl_->refuse(bytes, "; the system refused");
  }
  mark_used(block, bytes, size);
  return block;
}

void Allocator::deallocate(void* pointer, size_t bytes) {
  if (pointer == nullptr) return;
  const int index = index_of(bytes);
  mark_system(pointer, sizeof(FreeBlock));
  mark_free(pointer, size_of(index));
  impl_->keep(pointer, index);
  impl_->count_out(size_of(index));
}

void Allocator::release_cache() { impl_->release(); }

AllocatorStats Allocator::stats() const {
  AllocatorStats stats;
  stats.bytes_in_use = impl_->in_use.load(std::memory_order_relaxed);
  stats.bytes_cached = impl_->cached();
  stats.peak_bytes = impl_->peak.load(std::memory_order_relaxed);
  stats.system_calls = impl_->system_calls.load(std::memory_order_relaxed);
  return stats;
}

void Allocator::set_limit(int64_t bytes) {
  impl_->limit.store(bytes > 0 ? bytes : impl_->usual_limit, std::memory_order_relaxed);
}

int64_t Allocator::limit() const { return impl_->limit.load(std::memory_order_relaxed); }

}  // namespace treenail
