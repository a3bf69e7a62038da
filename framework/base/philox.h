// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): block i of a stream is a function of (key, counter + i), so any thread may compute any
// part. Seeds enter as in TensorFlow 1. How bits become uniform or normal numbers: the random
// kernels.
#pragma once

#include <array>
#include <cstdint>

#include "framework/base/philox_words.h"

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
  explicit Philox(const philox::Words& words)
      : counter_(std::to_array(words.counter)), key_(std::to_array(words.key)) {}

  // The block `index` places on.
  Block operator()(uint64_t index) const { return generate(advanced(counter_, index), key_); }
  // The stream that begins `blocks` places on.
  Philox skipped(uint64_t blocks) const { return Philox(advanced(counter_, blocks), key_); }

  const Block& counter() const { return counter_; }
  const Key& key() const { return key_; }
  philox::Words words() const {
    return {{counter_[0], counter_[1], counter_[2], counter_[3]}, {key_[0], key_[1]}};
  }

  static Block generate(Block counter, const Key& key) {
    philox::generate(counter.data(), key.data());
    return counter;
  }

  // counter + blocks, as one number of 128 bits, lowest word first.
  static Block advanced(Block counter, uint64_t blocks) {
    philox::advance(counter.data(), blocks);
    return counter;
  }

 private:
  Block counter_;
  Key key_;
};

}  // namespace treenail
