// SPDX-License-Identifier: Apache-2.0
// CRC-32C against the vectors of RFC 3720 appendix B.4, both ways of computing it.
#include "framework/base/crc32c.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace treenail {
namespace {

void expect_crc(const std::vector<uint8_t>& bytes, uint32_t expected) {
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), expected);
  EXPECT_EQ(crc32c_portable(bytes.data(), bytes.size()), expected);
}

TEST(Crc32c, PublishedVectors) {
  expect_crc(std::vector<uint8_t>(32, 0), 0x8a9136aau);
  expect_crc(std::vector<uint8_t>(32, 0xff), 0x62a8ab43u);
  std::vector<uint8_t> counting(32);
  std::iota(counting.begin(), counting.end(), uint8_t{0});
  expect_crc(counting, 0x46dd794eu);
  expect_crc(std::vector<uint8_t>(counting.rbegin(), counting.rend()), 0x113fdb5cu);
  expect_crc(
      {0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
       0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0},
      0xd9963a56u);
  constexpr std::string_view kDigits = "123456789";  // the check value every catalogue gives
  expect_crc({kDigits.begin(), kDigits.end()}, 0xe3069283u);
  expect_crc({}, 0u);
}

TEST(Crc32c, BothWaysAgreeAtEveryLengthAlignmentAndSplit) {
  std::vector<uint8_t> bytes(300);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= bytes.size(); length += 7) {
      const uint8_t* at = bytes.data() + begin;
      const uint32_t whole = crc32c(at, length);
      EXPECT_EQ(whole, crc32c_portable(at, length));
      const size_t half = length / 2;
      EXPECT_EQ(whole, crc32c(at + half, length - half, crc32c(at, half)));
    }
  }
}

TEST(Crc32c, MaskingIsUndone) {
  for (const uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) {
    EXPECT_NE(mask_crc(crc), crc);
    EXPECT_EQ(unmask_crc(mask_crc(crc)), crc);
  }
}

}  // namespace
}  // namespace treenail
