// SPDX-License-Identifier: Apache-2.0
// float16 (IEEE binary16) and bfloat16 as plain structs of 16 bits, alike at every ISA level.
// Arithmetic is done in float: kernels convert whole tiles; these conversions (round to nearest
// even, NaN stays NaN) are the scalar reference.
#pragma once

#include <bit>
#include <cstdint>

namespace treenail {

float half_bits_to_float(uint16_t bits);
uint16_t float_to_half_bits(float value);

inline float bfloat16_bits_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
inline uint16_t float_to_bfloat16_bits(float value) {
  const uint32_t x = std::bit_cast<uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
  return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value) : bits(float_to_half_bits(value)) {}
  explicit operator float() const { return half_bits_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(float_to_bfloat16_bits(value)) {}
  explicit operator float() const { return bfloat16_bits_to_float(bits); }
};

static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);

}  // namespace treenail
