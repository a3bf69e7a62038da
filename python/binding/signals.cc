// SPDX-License-Identifier: Apache-2.0
#include "python/binding/signals.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "python/binding/gil.h"
#include "python/binding/numpy.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

// Bumped in the child of a fork, where the forking thread becomes the main one.
std::atomic<int> fork_generation{0};

bool is_main_thread() {
  thread_local int known_generation = -1;
  thread_local bool main = false;
  const int generation = fork_generation.load(std::memory_order_relaxed);
  if (known_generation != generation) {
    known_generation = generation;
    main = syscall(SYS_gettid) == getpid();
  }
  return main;
}

void poll_signals() {
  if (PyGILState_Check() != 0) {
    checked(parking(PyErr_CheckSignals));
    return;
  }
  const GilRetake gil;
  release_borrowed();
  checked(parking(PyErr_CheckSignals));
}

}  // namespace

SignalPoll signal_poll() { return is_main_thread() ? poll_signals : nullptr; }

void watch_forks_for_signals() {
  pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace treenail::python
