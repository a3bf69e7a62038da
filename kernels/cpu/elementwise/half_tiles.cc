// SPDX-License-Identifier: Apache-2.0
// The conversions of half_tiles.h, branch-free so that they become vector code. Compiled once per
// level: inlined into each of their users they were a tenth of what a level costs to compile.
#include "kernels/cpu/elementwise/half_tiles.h"

#include <bit>

namespace treenail::cpu {

void widen(const BFloat16* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i].bits) << 16);
}

void narrow(const float* from, BFloat16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t x = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
    const uint32_t nan = (x >> 16) | 0x40u;
    to[i].bits = static_cast<uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
}

void widen(const Float16* from, float* to, int64_t n) {
  constexpr uint32_t kExponent = 0x7c00u << 13;
  constexpr float kSmallest = std::bit_cast<float>(113u << 23);  // 2^-14
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t h = from[i].bits;
    const uint32_t shifted = (h & 0x7fffu) << 13;
    const uint32_t exponent = shifted & kExponent;
    const uint32_t normal = shifted + ((127u - 15u) << 23);
    const uint32_t special = normal + ((128u - 16u) << 23);
    const uint32_t tiny =
        std::bit_cast<uint32_t>(std::bit_cast<float>(normal + (1u << 23)) - kSmallest);
    const uint32_t magnitude = exponent == kExponent ? special : exponent == 0 ? tiny : normal;
    to[i] = std::bit_cast<float>(magnitude | ((h & 0x8000u) << 16));
  }
}

void narrow(const float* from, Float16* to, int64_t n) {
  constexpr uint32_t kOverflow = (127u + 16u) << 23;
  constexpr uint32_t kNormal = 113u << 23;
  constexpr uint32_t kMagic = (127u - 15u + 23u - 10u + 1u) << 23;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t sign = bits & 0x80000000u;
    const uint32_t x = bits ^ sign;
    const uint32_t special = x > 0x7f800000u ? 0x7e00u | ((x >> 13) & 0x3ffu) : 0x7c00u;
    // The addition shifts the significand into place and rounds it, to nearest even.
    const uint32_t tiny =
        std::bit_cast<uint32_t>(std::bit_cast<float>(x) + std::bit_cast<float>(kMagic)) - kMagic;
    const uint32_t normal = (x - ((127u - 15u) << 23) + 0xfffu + ((x >> 13) & 1u)) >> 13;
    const uint32_t magnitude = x >= kOverflow ? special : x < kNormal ? tiny : normal;
    to[i].bits = static_cast<uint16_t>(magnitude | (sign >> 16));
  }
}

void widen(DType dtype, const void* from, int64_t at, int64_t n, float* to) {
  if (dtype == DType::kFloat16) return widen(static_cast<const Float16*>(from) + at, to, n);
  widen(static_cast<const BFloat16*>(from) + at, to, n);
}

void narrow(DType dtype, const float* from, int64_t n, void* to, int64_t at) {
  if (dtype == DType::kFloat16) return narrow(from, static_cast<Float16*>(to) + at, n);
  narrow(from, static_cast<BFloat16*>(to) + at, n);
}

}  // namespace treenail::cpu
