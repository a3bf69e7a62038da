// SPDX-License-Identifier: Apache-2.0
// Hashes and letters on bytes of every kind, each in a block of its own size: what reads beyond its
// end is seen under the address sanitizer. Values: tests/cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "kernels/host/strings/fingerprint.h"
#include "kernels/host/strings/letter_case.h"
#include "kernels/host/strings/utf8.h"

namespace treenail::host {
namespace {

// The same bytes where nothing lies behind them.
template <class F>
auto on_exact_bytes(const std::string& text, F&& f) {
  const std::unique_ptr<char[]> bytes(new char[text.size()]);
  std::copy(text.begin(), text.end(), bytes.get());
  return f(std::string_view(bytes.get(), text.size()));
}

std::string random_text(std::mt19937* random, size_t length) {
  // Mostly bytes that begin or continue characters.
  constexpr char kBytes[] = "aZ \xc3\xe2\xf0\xed\x80\xa0\xbf\xce\xa3\x9f\xff";
  std::string text(length, ' ');
  for (char& c : text) {
    c = (*random)() % 4 == 0 ? static_cast<char>((*random)())
                             : kBytes[(*random)() % (sizeof kBytes - 1)];
  }
  return text;
}

TEST(Fingerprints, EveryLengthAndEveryByteCounts) {
  std::set<uint64_t> seen;
  size_t made = 0;
  for (size_t length = 0; length <= 200; ++length) {
    std::string text(length, 'x');
    for (size_t change = 0; change <= length; ++change, ++made) {
      if (change > 0) text[change - 1] = 'y';
      seen.insert(on_exact_bytes(text, fingerprint64));
    }
  }
  EXPECT_EQ(seen.size(), made);
  for (size_t length = 0; length <= 40; ++length) {
    const std::string text(length, 'x');
    const auto sip = [](std::string_view bytes) { return sip_hash(1, 2, bytes); };
    const auto murmur = [](std::string_view bytes) { return murmur_hash64a(bytes, 3); };
    EXPECT_NE(on_exact_bytes(text, sip), on_exact_bytes(text + "x", sip));
    EXPECT_NE(on_exact_bytes(text, murmur), on_exact_bytes(text + "x", murmur));
  }
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text, &at);
    std::string again;
    append_character(&again, c);
    if (again != text.substr(begin, at - begin)) return false;
  }
  return true;
}

TEST(Letters, WhateverComesUtf8Goes) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    const std::string text = random_text(&random, random() % 24);
    for (const auto convert : {to_lower_utf8, to_upper_utf8}) {
      const std::string out = on_exact_bytes(text, convert);
      ASSERT_TRUE(is_utf8(out));
      ASSERT_EQ(convert(out), out);  // once is enough
    }
  }
}

TEST(Letters, ManySigmasTakeLinearTime) {
  std::string text = "A";
  for (int i = 0; i < 200000; ++i) text += "\xce\xa3.";
  EXPECT_EQ(to_lower_utf8(text).size(), text.size());
}

}  // namespace
}  // namespace treenail::host
