// SPDX-License-Identifier: Apache-2.0
// What ThreadSanitizer cannot know here. An error goes from thread to thread as an exception_ptr,
// whose users libstdc++ counts in code of its own that was not compiled for it: the last one frees
// the exception, and nothing seems to come before that.
#include "tests/support/sanitizers.h"

#ifdef TREENAIL_TSAN
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name for it
extern "C" const char* __tsan_default_suppressions();

// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
