// SPDX-License-Identifier: Apache-2.0
// What ThreadSanitizer cannot know here. An error goes from thread to thread as an exception_ptr,
// whose users libstdc++ counts in code of its own that was not compiled for it: the last one frees
// the exception, and nothing seems to come before that. So whoever lets go of an exception says so.
#include "tests/support/sanitizers.h"

#ifdef TREENAIL_TSAN
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

namespace {

char exceptions;

// What was done with an exception before comes before what is done when it is let go here.
void let_go() {
  __tsan_release(&exceptions);
  __tsan_acquire(&exceptions);
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

#define TN_RELEASE "_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv"

}  // namespace

// NOLINTNEXTLINE(bugprone-reserved-identifier): the runtime's name for it
extern "C" void __cxa_end_catch() {
  static auto* const real = next<void (*)()>("__cxa_end_catch");
  let_go();
  real();
}

// Of std::exception_ptr, whose destructor calls it.
extern "C" void treenail_release(void* self) asm(TN_RELEASE);
extern "C" void treenail_release(void* self) {
  static auto* const real = next<void (*)(void*)>(TN_RELEASE);
  let_go();
  real(self);
}
#endif
