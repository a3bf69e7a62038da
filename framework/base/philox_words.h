// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 on plain arrays of words, which code of GPUs can have too: the arithmetic behind
// philox.h. A counter is one number of 128 bits in four words, lowest first; a key two words.
#pragma once

#include <cstdint>

// kernels/cuda/language/gpu.h, where it came before, says how a function of device code begins.
#if defined(TN_DEVICE)
#define TN_PHILOX TN_DEVICE
#else
#define TN_PHILOX inline
#endif

namespace treenail::philox {

// A place in a stream.
struct Words {
  uint32_t counter[4];
  uint32_t key[2];
};

TN_PHILOX void advance(uint32_t* counter, uint64_t blocks) {
  const uint64_t low = static_cast<uint64_t>(counter[1]) << 32 | counter[0];
  const uint64_t sum = low + blocks;
  counter[0] = static_cast<uint32_t>(sum);
  counter[1] = static_cast<uint32_t>(sum >> 32);
  if (sum < low && ++counter[2] == 0) ++counter[3];
}

TN_PHILOX void one_round(uint32_t* words, uint32_t key0, uint32_t key1) {
  const uint64_t a = uint64_t{0xd2511f53u} * words[0];
  const uint64_t b = uint64_t{0xcd9e8d57u} * words[2];
  words[0] = static_cast<uint32_t>(b >> 32) ^ words[1] ^ key0;
  words[1] = static_cast<uint32_t>(b);
  words[2] = static_cast<uint32_t>(a >> 32) ^ words[3] ^ key1;
  words[3] = static_cast<uint32_t>(a);
}

// A counter becomes its block.
TN_PHILOX void generate(uint32_t* words, const uint32_t* key) {
  uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < 9; ++round) {
    one_round(words, key0, key1);
    key0 += 0x9e3779b9u;  // the golden ratio
    key1 += 0xbb67ae85u;  // sqrt(3) - 1
  }
  one_round(words, key0, key1);
}

// The block `index` places on.
TN_PHILOX void block(const Words& stream, uint64_t index, uint32_t* words) {
  for (int i = 0; i < 4; ++i) words[i] = stream.counter[i];
  advance(words, index);
  generate(words, stream.key);
}

// Where the stream of a stateless op begins. One block scrambles the seeds, so that each of their
// bits matters.
TN_PHILOX Words seeded(uint64_t seed, uint64_t seed2) {
  uint32_t mixed[4] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                       static_cast<uint32_t>(seed2), static_cast<uint32_t>(seed2 >> 32)};
  const uint32_t key[2] = {0x3ec8f720u, 0x02461e29u};
  generate(mixed, key);
  return {{0, 0, mixed[2], mixed[3]}, {mixed[0], mixed[1]}};
}

}  // namespace treenail::philox
