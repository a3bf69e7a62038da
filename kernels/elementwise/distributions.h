// SPDX-License-Identifier: Apache-2.0
// How the words of a Philox stream become numbers, as in TensorFlow 1. Outputs come in groups, as
// many as one block gives: 4, of 8 bytes 2. Only log, sin and cos are the library's, and so may
// differ in the last place from one device to another.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "kernels/cpu/simd/vec.h"

namespace treenail::TN_SIDE::random {
namespace {

template <class T>
inline constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
// Blocks that a group of a distribution which rejects samples owns: 256 words for each output.
template <class T>
inline constexpr uint64_t kRegion = kGroup<T> * 256 / 4;

// 23 (52) random bits after the binary point of 1.0 ..., less 1.
TN_INLINE float unit_float(uint32_t word) {
  return bits<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0F;
}
TN_INLINE double unit_double(uint32_t high, uint32_t low) {
  const uint64_t fraction = (static_cast<uint64_t>(high & 0xfffffu) << 32) | low;
  return bits<double>(fraction | (uint64_t{1023} << 52)) - 1.0;
}
// 10 (7) random bits, which the half types hold.
TN_INLINE float unit_float16(uint32_t word) {
  return static_cast<float>(word & 0x3ffu) * (1.0F / 1024.0F);
}
TN_INLINE float unit_bfloat16(uint32_t word) {
  return static_cast<float>(word & 0x7fu) * (1.0F / 128.0F);
}

// Box-Muller: two uniform numbers to two normal ones, of two words (four). Tiny ones are raised,
// for the logarithm's sake.
template <class F>
TN_INLINE void box_muller(F uniform, F angle, F* out) {
  const F u = uniform < F(1.0e-7) ? F(1.0e-7) : uniform;
  const F radius = std::sqrt(F(-2) * std::log(u));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}
TN_INLINE void normal_pair(const uint32_t* words, float* out) {
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(unit_float(words[1]));
  box_muller(unit_float(words[0]), static_cast<float>(angle), out);
}
TN_INLINE void normal_pair(const uint32_t* words, double* out) {
  const double angle = 2.0 * std::numbers::pi * unit_double(words[2], words[3]);
  box_muller(unit_double(words[0], words[1]), angle, out);
}

// Output i of a run of whole blocks: low + word modulo (high - low), of two words for 8 bytes.
template <class T>
TN_INLINE T uniform_int(const uint32_t* words, int64_t i, T low, T high) {
  using Unsigned = std::make_unsigned_t<T>;
  const Unsigned range = static_cast<Unsigned>(high) - static_cast<Unsigned>(low);
  Unsigned word;
  if constexpr (sizeof(T) == 8) {
    word = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
  } else {
    word = words[i];
  }
  return static_cast<T>(static_cast<Unsigned>(low) + word % range);
}

// Normal numbers of magnitude below 2, from blocks first, first + 1, ... of the group's region.
// block(i, words): the four words of a block of the stream.
template <class F, class Block>
TN_INLINE void truncated_group(const Block& block, uint64_t first, F* out) {
  constexpr int kCount = kGroup<F>;
  int filled = 0;
  for (uint64_t at = first; filled < kCount; ++at) {
    uint32_t words[4];
    F drawn[kCount];
    block(at, words);
    for (int i = 0; i < kCount; i += 2) normal_pair(words + i * 4 / kCount, drawn + i);
    for (int i = 0; i < kCount && filled < kCount; ++i) {
      if (std::abs(drawn[i]) < F(2)) out[filled++] = drawn[i];
    }
  }
}

}  // namespace
}  // namespace treenail::TN_SIDE::random
