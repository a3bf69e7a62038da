// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 against arithmetic in double: every binary16 value, and rounding at and
// around every midpoint.
#include "framework/tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace treenail {
namespace {

// What IEEE 754 says the bits mean, in double.
double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryValueConvertsAndReadsBack) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = half_bits_to_float(bits);
    if (std::isnan(half_value(bits))) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(float_to_half_bits(value), bits | 0x200);  // quiet, payload kept
    } else {
      EXPECT_EQ(static_cast<double>(value), half_value(bits));
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
      EXPECT_EQ(float_to_half_bits(value), bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7bff; ++i) {
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    const auto middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
    const uint16_t even = (low & 1) == 0 ? low : high;
    ASSERT_EQ(float_to_half_bits(middle), even) << i;
    ASSERT_EQ(float_to_half_bits(std::nextafter(middle, 0.0f)), low) << i;
    ASSERT_EQ(float_to_half_bits(std::nextafter(middle, 1e9f)), high) << i;
    ASSERT_EQ(float_to_half_bits(-middle), even | 0x8000) << i;
  }
}

TEST(Half, LargeAndTinyValues) {
  EXPECT_EQ(float_to_half_bits(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_half_bits(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half_bits(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half_bits(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(float_to_half_bits(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(float_to_half_bits(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(float_to_half_bits(-0.0f), 0x8000);
  EXPECT_EQ(float_to_half_bits(std::ldexp(1.0f, -25)), 0);
  EXPECT_EQ(float_to_half_bits(std::nextafter(std::ldexp(1.0f, -25), 1.0f)), 1);
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint32_t i = 0; i < 0x7f7f; i += 3) {
    const uint32_t low = i << 16;
    const auto expect = [](uint32_t bits, uint32_t expected) {
      ASSERT_EQ(float_to_bfloat16_bits(std::bit_cast<float>(bits)), expected) << bits;
    };
    expect(low, i);
    expect(low + 0x7fff, i);
    expect(low + 0x8000, (i & 1) == 0 ? i : i + 1);
    expect(low + 0x8001, i + 1);
    expect((low + 0x8001) | 0x80000000u, (i + 1) | 0x8000);
  }
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f)), 1.0f);
}

TEST(BFloat16, NanStaysNan) {
  const auto nan = std::bit_cast<float>(0x7f800001u);  // its payload lies in the bits cut off
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan))));
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::infinity()))));
}

}  // namespace
}  // namespace treenail
