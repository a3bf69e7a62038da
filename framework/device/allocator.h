// SPDX-License-Identifier: Apache-2.0
// Host memory. A size-class caching allocator: freed blocks stay for the next request of their
// class, large ones lie on 2 MiB huge pages (page faults cost more than most kernels:
// performance.md finding 3). Blocks are aligned to 64 bytes. Beyond TREENAIL_MEMORY_LIMIT (default
// 95 % of the smaller of cgroup limit and RAM) it raises ResourceExhausted (bytes asked, in use,
// limit).
#pragma once

#include <cstddef>
#include <cstdint>

namespace treenail {

struct AllocatorStats {
  int64_t bytes_in_use = 0;  // asked for and not yet freed, rounded up to size classes
  int64_t bytes_cached = 0;  // freed, kept for reuse
  int64_t peak_bytes = 0;    // highest bytes_in_use
  int64_t system_calls = 0;  // times memory was taken from the system or given back
};

class Allocator {
 public:
  static Allocator& host();  // never destroyed

  // At least `bytes` bytes, 64-byte aligned, uninitialised; `bytes` == 0 gives a valid pointer.
  // Errors: ResourceExhausted.
  void* allocate(size_t bytes);
  void deallocate(void* pointer, size_t bytes);  // the same `bytes` as given to allocate
  void
  release_cache();  // gives cached blocks back to the system, but for small ones of other threads
  AllocatorStats stats() const;
  void set_limit(int64_t bytes);  // tests and Session options; <= 0 restores the default
  int64_t limit() const;

 private:
  Allocator();
  struct Impl;
  Impl* impl_;
};

// A base for small objects that come and go with every run: in the allocator's memory, so that a
// steady run asks the system for nothing.
class FromAllocator {
 public:
  static void* operator new(size_t bytes) { return Allocator::host().allocate(bytes); }
  static void operator delete(void* object, size_t bytes) {
    Allocator::host().deallocate(object, bytes);
  }
};

}  // namespace treenail
