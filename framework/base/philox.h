// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): block i of a stream is a function of (key, counter + i), so any thread may compute any
// part. Seeds enter as in TensorFlow 1. How bits become uniform or normal numbers: the random
// kernels.
#pragma once

#include <array>
#include <cstdint>

namespace treenail {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  // TensorFlow 1's stream of (graph seed, op seed): the key is the one, the upper half of the
  // counter the other.
  Philox(uint64_t seed, uint64_t seed2)
      : counter_{0, 0, static_cast<uint32_t>(seed2), static_cast<uint32_t>(seed2 >> 32)},
        key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}
  Philox(const Block& counter, const Key& key) : counter_(counter), key_(key) {}

  // The block `index` places on.
  Block operator()(uint64_t index) const { return generate(advanced(counter_, index), key_); }
  // The stream that begins `blocks` places on.
  Philox skipped(uint64_t blocks) const { return Philox(advanced(counter_, blocks), key_); }

  const Block& counter() const { return counter_; }
  const Key& key() const { return key_; }

  static Block generate(Block counter, Key key) {
    for (int round = 0; round < 9; ++round) {
      counter = one_round(counter, key);
      key[0] += 0x9e3779b9u;  // the golden ratio
      key[1] += 0xbb67ae85u;  // sqrt(3) - 1
    }
    return one_round(counter, key);
  }

  // counter + blocks, as one number of 128 bits, lowest word first.
  static Block advanced(const Block& counter, uint64_t blocks) {
    const uint64_t low = static_cast<uint64_t>(counter[1]) << 32 | counter[0];
    const uint64_t sum = low + blocks;
    Block result = {static_cast<uint32_t>(sum), static_cast<uint32_t>(sum >> 32), counter[2],
                    counter[3]};
    if (sum < low && ++result[2] == 0) ++result[3];
    return result;
  }

 private:
  static Block one_round(const Block& counter, const Key& key) {
    const uint64_t a = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57u} * counter[2];
    return {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
            static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
  }

  Block counter_;
  Key key_;
};

}  // namespace treenail
