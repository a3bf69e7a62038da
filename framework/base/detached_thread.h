// SPDX-License-Identifier: Apache-2.0
// A thread that nobody joins, and that takes no signals. It is made detached: glibc before 2.39
// reads a thread that pthread_detach() is called for after it may have ended and gone (its bug
// 19951), which crashed runs whose thread was quicker.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace treenail {

// 0, or the error of pthread_create().
inline int start_detached_thread(void* (*entry)(void*), void* argument) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes)) return error;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, entry, argument);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace treenail
