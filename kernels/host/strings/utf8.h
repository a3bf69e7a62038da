// SPDX-License-Identifier: Apache-2.0
// UTF-8, one character at a time. Source: The Unicode Standard, chapter 3 (tables 3-6 and 3-7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace treenail::host {

inline constexpr char32_t kReplacement = 0xfffd;

inline bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The character at *at, which moves behind it. What is no UTF-8 is U+FFFD, for the longest part
// that could have begun a character, or for one byte.
inline char32_t next_character(std::string_view text, size_t* at) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte((*at)++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xc2 && lead <= 0xdf   ? 1
                   : lead >= 0xe0 && lead <= 0xef ? 2
                   : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                  : 0;
  if (more == 0) return kReplacement;
  // The second byte is bound where shorter forms, surrogates and what lies above U+10FFFF begin.
  unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t character = lead & (0x3fu >> more);
  for (int i = 0; i < more; ++i, low = 0x80, high = 0xbf) {
    if (*at == text.size() || byte(*at) < low || byte(*at) > high) return kReplacement;
    character = character << 6 | (byte((*at)++) & 0x3fu);
  }
  return character;
}

inline void append_character(std::string* out, char32_t c) {
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

}  // namespace treenail::host
