// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/strings/letter_case.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "kernels/host/strings/letter_case_table.h"
#include "kernels/host/strings/utf8.h"

namespace treenail::host {
namespace {

template <size_t N>
bool lies_in(const CharacterRange (&ranges)[N], char32_t c) {
  const auto* at =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](char32_t x, const CharacterRange& r) { return x < r.first; });
  return at != std::begin(ranges) && c <= (at - 1)->last;
}

template <size_t N, size_t M>
void append_mapped(std::string* out, char32_t c, const CaseRange (&ranges)[N],
                   const CaseSpecial (&specials)[M]) {
  const auto* special =
      std::lower_bound(std::begin(specials), std::end(specials), c,
                       [](const CaseSpecial& s, char32_t x) { return s.from < x; });
  if (special != std::end(specials) && special->from == c) {
    for (const char32_t to : special->to) {
      if (to != 0) append_character(out, to);
    }
    return;
  }
  const auto* at = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                    [](char32_t x, const CaseRange& r) { return x < r.first; });
  if (at != std::begin(ranges)) {
    const CaseRange& range = *(at - 1);
    if (c <= range.last && (c - range.first) % range.step == 0)
      c = static_cast<char32_t>(static_cast<int32_t>(c) + range.delta);
  }
  append_character(out, c);
}

constexpr char32_t kCapitalSigma = 0x3a3, kSmallSigma = 0x3c3, kFinalSigma = 0x3c2;

// Is the first character from `at` on that counts a letter? Sigmas count, so that no part of a text
// is looked through for two of them.
bool letter_follows(std::string_view text, size_t at) {
  while (at < text.size()) {
    const char32_t c = next_character(text, &at);
    if (!lies_in(kCaseIgnorable, c)) return lies_in(kCased, c);
  }
  return false;
}

}  // namespace

std::string to_lower_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_letter = false;  // the last character that counts
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, &at);
    if (c == kCapitalSigma) {
      append_character(&out, after_letter && !letter_follows(text, at) ? kFinalSigma : kSmallSigma);
    } else {
      append_mapped(&out, c, kLowerRanges, kLowerSpecials);
    }
    if (!lies_in(kCaseIgnorable, c)) after_letter = lies_in(kCased, c);
  }
  return out;
}

std::string to_upper_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();)
    append_mapped(&out, next_character(text, &at), kUpperRanges, kUpperSpecials);
  return out;
}

}  // namespace treenail::host
