// SPDX-License-Identifier: Apache-2.0
// Waiting on an atomic word: the CPU's hint for spin loops, a monotonic clock, and the kernel's
// futex. For the thread pool and other code of base; everything else waits on condition variables.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace treenail {

inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile(
      "isb" ::
          : "memory");  // about as long as x86's pause; `yield` does nothing on most cores
#elif defined(__powerpc64__)
  __asm__ volatile("or 27,27,27" ::: "memory");
#else
  __asm__ volatile("" ::: "memory");
#endif
}

inline int64_t monotonic_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Sleeps while *word == expected; may return early. `word` is 4-byte aligned.
inline void futex_wait(const void* word, uint32_t expected) {
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

// As futex_wait(), at most for `ns`.
inline void futex_wait_for(const void* word, uint32_t expected, int64_t ns) {
  timespec most;
  most.tv_sec = ns / 1'000'000'000;
  most.tv_nsec = ns % 1'000'000'000;
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &most, nullptr, 0);
}

inline void futex_wake(const void* word, int threads) {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

}  // namespace treenail
