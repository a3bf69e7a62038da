// SPDX-License-Identifier: Apache-2.0
// What the sanitizers are told about fibers. For ThreadSanitizer each fiber is a thread, and
// nothing that the engine does orders one before another but release() and acquire(). Functions of
// the engine that run on a fiber are TN_UNSEEN: what they read and write is no business of the
// kernel's.
#pragma once

#include <cstddef>

#include "tests/support/sanitizers.h"

#ifdef TREENAIL_TSAN
extern "C" {
void* __tsan_create_fiber(unsigned flags);
void* __tsan_get_current_fiber();
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* at);
void __tsan_release(void* at);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#define TN_UNSEEN __attribute__((noinline, no_sanitize("thread")))
#else
#define TN_UNSEEN __attribute__((noinline, no_sanitize("address")))
#endif
#ifdef TREENAIL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace treenail::cuda_sim::watch {

#ifdef TREENAIL_TSAN
inline constexpr bool kThreads = true;
TN_UNSEEN inline void* create() { return __tsan_create_fiber(0); }
TN_UNSEEN inline void* current() { return __tsan_get_current_fiber(); }
TN_UNSEEN inline void switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, 1); }  // 1: no order
TN_UNSEEN inline void acquire(void* at) { __tsan_acquire(at); }
TN_UNSEEN inline void release(void* at) { __tsan_release(at); }
TN_UNSEEN inline void ignore_begin() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
TN_UNSEEN inline void ignore_end() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
inline constexpr bool kThreads = false;
inline void* create() { return nullptr; }
inline void* current() { return nullptr; }
inline void switch_to(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
inline void ignore_begin() {}
inline void ignore_end() {}
#endif

#ifdef TREENAIL_ASAN
// Around a change of stacks. `own`: where the one that is left keeps its fake frames; null where it
// ends.
inline void leave(void** own, const void* stack, size_t bytes) {
  __sanitizer_start_switch_fiber(own, stack, bytes);
}
inline void arrive(void* own, const void** from, size_t* bytes) {
  __sanitizer_finish_switch_fiber(own, from, bytes);
}
inline void clean(void* stack, size_t bytes) { __asan_unpoison_memory_region(stack, bytes); }
#else
inline void leave(void**, const void*, size_t) {}
inline void arrive(void*, const void**, size_t*) {}
inline void clean(void*, size_t) {}
#endif

}  // namespace treenail::cuda_sim::watch
