// SPDX-License-Identifier: Apache-2.0
// Several blocks side by side, one per 64-bit lane: a word lies in the lower half of its lane, the
// product of two words fills it. What the upper half of a word's lane holds never matters, so no
// masking is needed between rounds. The reference, one block at a time, is framework/base/philox.h.
#include "kernels/cpu/random/philox_fill.h"

#include <algorithm>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace treenail::cpu {
namespace {

// The instructions that multiply the lower halves of lanes, and the order in which lanes are
// stored: ab[0], cd[0], ab[1], ...
#if defined(__AVX2__)
constexpr int kBlocks = 4;
using Lanes = uint64_t __attribute__((vector_size(32)));
Lanes product(Lanes a, Lanes b) { return (Lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
void store_pairs(Lanes ab, Lanes cd, uint32_t* words) {
  const __m256i even = _mm256_unpacklo_epi64((__m256i)ab, (__m256i)cd);
  const __m256i odd = _mm256_unpackhi_epi64((__m256i)ab, (__m256i)cd);
  auto* to = reinterpret_cast<__m256i*>(words);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}
#elif defined(__SSE2__)
constexpr int kBlocks = 2;
using Lanes = uint64_t __attribute__((vector_size(16)));
Lanes product(Lanes a, Lanes b) { return (Lanes)_mm_mul_epu32((__m128i)a, (__m128i)b); }
void store_pairs(Lanes ab, Lanes cd, uint32_t* words) {
  auto* to = reinterpret_cast<__m128i*>(words);
  _mm_storeu_si128(to, _mm_unpacklo_epi64((__m128i)ab, (__m128i)cd));
  _mm_storeu_si128(to + 1, _mm_unpackhi_epi64((__m128i)ab, (__m128i)cd));
}
#else
constexpr int kBlocks = 2;
using Lanes = uint64_t __attribute__((vector_size(16)));
#if defined(__ARM_NEON)
Lanes product(Lanes a, Lanes b) {
  return (Lanes)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
}
#else
Lanes product(Lanes a, Lanes b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#endif
void store_pairs(Lanes ab, Lanes cd, uint32_t* words) {
  for (int i = 0; i < kBlocks; ++i) {
    words[4 * i] = static_cast<uint32_t>(ab[i]);
    words[4 * i + 1] = static_cast<uint32_t>(ab[i] >> 32);
    words[4 * i + 2] = static_cast<uint32_t>(cd[i]);
    words[4 * i + 3] = static_cast<uint32_t>(cd[i] >> 32);
  }
}
#endif

Lanes all(uint64_t value) { return Lanes{} + value; }

// kBlocks blocks from `counter` on, as long as adding lane numbers does not carry out of the lowest
// word.
void fill_lanes(const Philox::Block& counter, Philox::Key key, uint32_t* words) {
  Lanes a = all(counter[0]);
  for (int i = 0; i < kBlocks; ++i) a[i] += static_cast<uint64_t>(i);
  Lanes b = all(counter[1]);
  Lanes c = all(counter[2]);
  Lanes d = all(counter[3]);
  const Lanes first_factor = all(0xd2511f53u);
  const Lanes second_factor = all(0xcd9e8d57u);
  for (int round = 0; round < 10; ++round) {
    const Lanes p = product(a, first_factor);
    const Lanes q = product(c, second_factor);
    a = (q >> 32) ^ b ^ all(key[0]);
    b = q;
    c = (p >> 32) ^ d ^ all(key[1]);
    d = p;
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  const Lanes low = all(0xffffffffu);
  store_pairs((a & low) | b << 32, (c & low) | d << 32, words);
}

}  // namespace

void fill_blocks(const Philox& stream, uint64_t first, int64_t blocks, uint32_t* words) {
  for (int64_t at = 0; at < blocks; at += kBlocks) {
    const Philox::Block counter =
        Philox::advanced(stream.counter(), first + static_cast<uint64_t>(at));
    const int64_t count = std::min<int64_t>(kBlocks, blocks - at);
    if (count == kBlocks && counter[0] <= 0xffffffffu - kBlocks) {
      fill_lanes(counter, stream.key(), words + 4 * at);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const Philox::Block block =
          Philox::generate(Philox::advanced(counter, static_cast<uint64_t>(i)), stream.key());
      std::copy(block.begin(), block.end(), words + 4 * (at + i));
    }
  }
}

}  // namespace treenail::cpu
