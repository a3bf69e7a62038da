// SPDX-License-Identifier: Apache-2.0
// What the RE2 adapter offers its user (kernels/host/strings/regex.cc). A compiled pattern is
// immutable and may be used by several threads at once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

struct Re2Pattern;

// Takes text of this length, once.
using Re2Take = void (*)(void* context, const char* text, size_t length);

enum Re2Result : int32_t { kRe2No = 0, kRe2Yes = 1, kRe2TooLarge = 2, kRe2OutOfMemory = 3 };

struct Re2Api {
  AdapterHeader header;
  // Null where the pattern is none; then `take` is given why.
  Re2Pattern* (*compile)(const char* pattern, size_t length, void* context, Re2Take take);
  void (*release)(Re2Pattern* pattern);
  // kRe2No where the rewrite does not go with the pattern; then `take` is given why.
  int32_t (*check_rewrite)(const Re2Pattern* pattern, const char* rewrite, size_t length,
                           void* context, Re2Take take);
  int32_t (*full_match)(const Re2Pattern* pattern, const char* text, size_t length);
  // Gives `take` the text with the first match or with all of them replaced. kRe2TooLarge beyond
  // `most` bytes: a rewrite may repeat the text as often as it likes.
  int32_t (*replace)(const Re2Pattern* pattern, const char* text, size_t length,
                     const char* rewrite, size_t rewrite_length, int32_t global, size_t most,
                     void* context, Re2Take take);
};

}  // namespace treenail
