// SPDX-License-Identifier: Apache-2.0
// binary16 <-> binary32 in integer arithmetic, so that neither rounding mode nor flush-to-zero can
// change a bit.
#include "framework/tensor/half.h"

#include <bit>
#include <cstdint>

namespace treenail {

// binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits; binary32: 1, 8 (bias 127), 23.
float half_bits_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) {  // infinity; NaN keeps its payload and becomes quiet
    const uint32_t quiet = fraction != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (fraction << 13));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  if (fraction == 0) return std::bit_cast<float>(sign);
  // Subnormal: fraction * 2^-24, normal in binary32.
  const int shift = std::countl_zero(fraction) - 21;  // brings the leading one to bit 10
  const uint32_t normalised = (fraction << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | (static_cast<uint32_t>(113 - shift) << 23) |
                              (normalised << 13));
}

uint16_t float_to_half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude >= 0x38800000u) {  // normal in binary16: rebias, round half to even; a carry moves
                                   // into the exponent
    const uint32_t rebiased = magnitude - (112u << 23);
    return static_cast<uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
  }
  if (magnitude <= 0x33000000u)
    return sign;  // at most half of the smallest subnormal, which ties to even zero
  // Subnormal in binary16: the significand in units of 2^-24.
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
  const uint32_t half = 1u << (shift - 1);
  const uint32_t odd = (significand >> shift) & 1u;
  return static_cast<uint16_t>(sign | ((significand + half - 1 + odd) >> shift));
}

}  // namespace treenail
