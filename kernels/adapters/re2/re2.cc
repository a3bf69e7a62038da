// SPDX-License-Identifier: Apache-2.0
// The RE2 adapter's table. No exception crosses: the one that may be thrown here is bad_alloc.
// Versions from 2022 (re2::StringPiece) to those on abseil (absl::string_view) differ only in the
// type of a piece of text.
#include <re2/re2.h>

#include <new>
#include <string>

#include "build_info.h"
#include "kernels/adapters/re2/re2_api.h"

namespace treenail {

struct Re2Pattern {
  Re2Pattern(const char* text, size_t length, const re2::RE2::Options& options)
      : regex(re2::StringPiece(text, length), options) {}
  re2::RE2 regex;
};

namespace {

using Piece = re2::StringPiece;

constexpr int kGroups = 10;  // \0 to \9
// For one pattern's program and automata; a larger one is refused, a larger automaton is replaced
// by a slower, still linear search.
constexpr int64_t kMostPatternBytes = int64_t{8} << 20;

void give(const std::string& text, void* context, Re2Take take) {
  take(context, text.data(), text.size());
}

Re2Pattern* compile(const char* pattern, size_t length, void* context, Re2Take take) {
  try {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kMostPatternBytes);
    auto* compiled = new Re2Pattern(pattern, length, options);
    if (compiled->regex.ok()) return compiled;
    give(compiled->regex.error(), context, take);
    delete compiled;
  } catch (const std::bad_alloc&) {
    give("out of memory", context, take);
  }
  return nullptr;
}

void release(Re2Pattern* pattern) { delete pattern; }

int32_t check_rewrite(const Re2Pattern* pattern, const char* rewrite, size_t length, void* context,
                      Re2Take take) {
  std::string error;
  if (pattern->regex.CheckRewriteString(Piece(rewrite, length), &error)) return kRe2Yes;
  give(error, context, take);
  return kRe2No;
}

int32_t full_match(const Re2Pattern* pattern, const char* text, size_t length) {
  const Piece piece(text, length);
  return pattern->regex.Match(piece, 0, length, re2::RE2::ANCHOR_BOTH, nullptr, 0) ? kRe2Yes
                                                                                   : kRe2No;
}

// The bytes of the character at `at`, so that an empty match never parts one.
size_t character_bytes(const char* text, size_t at, size_t length) {
  size_t end = at + 1;
  while (end < length && end < at + 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    ++end;
  return end - at;
}

// As RE2::GlobalReplace: no empty match directly behind a match.
int32_t replaced(const re2::RE2& regex, const char* text, size_t length, const Piece& rewrite,
                 bool global, size_t most, std::string* out) {
  const Piece piece(text, length);
  Piece groups[kGroups];
  const int used = 1 + re2::RE2::MaxSubmatch(rewrite);
  size_t at = 0;
  size_t copied = 0;          // text[0, copied) is in `out`
  bool behind_match = false;  // a match ended at `at`
  while (at <= length) {
    if (!regex.Match(piece, at, length, re2::RE2::UNANCHORED, groups, used)) break;
    const auto begin = static_cast<size_t>(groups[0].data() - text);
    const size_t size = groups[0].size();
    if (size == 0 && behind_match && begin == at) {
      if (at == length) break;
      at += character_bytes(text, at, length);
      behind_match = false;
      continue;
    }
    out->append(text + copied, begin - copied);
    regex.Rewrite(out, rewrite, groups, used);
    if (out->size() > most) return kRe2TooLarge;
    copied = at = begin + size;
    behind_match = true;
    if (!global) break;
  }
  out->append(text + copied, length - copied);
  return out->size() > most ? kRe2TooLarge : kRe2Yes;
}

int32_t replace(const Re2Pattern* pattern, const char* text, size_t length, const char* rewrite,
                size_t rewrite_length, int32_t global, size_t most, void* context, Re2Take take) {
  try {
    std::string out;
    const int32_t result = replaced(pattern->regex, length == 0 ? "" : text, length,
                                    Piece(rewrite, rewrite_length), global != 0, most, &out);
    if (result == kRe2Yes) give(out, context, take);
    return result;
  } catch (const std::bad_alloc&) {
    return kRe2OutOfMemory;
  }
}

constexpr Re2Api kApi = {
    {sizeof(Re2Api), build_info::kVersion}, compile, release, check_rewrite, full_match, replace};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter() { return &treenail::kApi; }
