// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 on a GPU: 16 bits in memory, computed in float. The conversions give the
// bits of framework/tensor/half.h, a NaN's payload too, which the GPU's own do not keep.
#pragma once

#include <cstdint>

#include "kernels/elementwise/side.h"

namespace treenail::TN_SIDE {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

TN_INLINE uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
TN_INLINE float float_of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

TN_INLINE float to_float(Float16 x) {
  const uint32_t magnitude = x.bits & 0x7fffu;
  // The exponent moved into place and corrected by 2^112: right for normal and denormal numbers
  // alike.
  const uint32_t scaled = float_bits(float_of_bits(magnitude << 13) * 0x1p112f);
  uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  special |= magnitude > 0x7c00u ? 0x00400000u : 0u;  // a NaN becomes quiet
  return float_of_bits(scaled | special | (x.bits & 0x8000u) << 16);
}
TN_INLINE float to_float(BFloat16 x) { return float_of_bits(static_cast<uint32_t>(x.bits) << 16); }

// To nearest, halves to even.
TN_INLINE Float16 to_float16(float x) {
  const uint32_t u = float_bits(x), magnitude = u & 0x7fffffffu;
  // Denormal results: adding 0.5 rounds at 2^-24, their unit.
  const uint32_t denormal = float_bits(float_of_bits(magnitude) + 0.5f) - float_bits(0.5f);
  // Normal ones: the exponent rebased, rounded by adding just less than half a unit and the last
  // bit.
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  uint32_t h = magnitude < 0x38800000u ? denormal : normal;
  h = magnitude >= 0x47800000u ? 0x7c00u : h;
  h = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : h;
  return {static_cast<uint16_t>(h | (u >> 16 & 0x8000u))};
}
TN_INLINE BFloat16 to_bfloat16(float x) {
  const uint32_t u = float_bits(x);
  const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<uint16_t>(is_nan ? u >> 16 | 0x40u : rounded)};
}

}  // namespace treenail::TN_SIDE
