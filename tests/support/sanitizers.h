// SPDX-License-Identifier: Apache-2.0
// Defines TREENAIL_TSAN where ThreadSanitizer watches this program, TREENAIL_ASAN where
// AddressSanitizer does.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define TREENAIL_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define TREENAIL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TREENAIL_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define TREENAIL_ASAN 1
#endif
#endif
