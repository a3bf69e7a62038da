// SPDX-License-Identifier: Apache-2.0
// The distributions that candidate samplers draw classes from. Which are drawn, with or without
// repetition, and what is said of them: candidate_sampling.cc.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "framework/base/fork.h"
#include "framework/base/philox.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail::host {

// The words of a Philox stream, one after the other, and numbers made of them.
class RandomWords {
 public:
  explicit RandomWords(const Philox& stream) : stream_(stream) {}
  uint32_t word() {
    if (at_ % 4 == 0) block_ = stream_(at_ / 4);
    return block_[at_++ % 4];
  }
  // Uniform in [0, n), but for a bias of n / 2^32 (2^64).
  uint64_t below(uint64_t n) {
    if (n <= UINT32_MAX) return word() % n;
    return wide_below(n);
  }
  uint64_t wide_below(uint64_t n) {
    const uint64_t low = word();
    return (low | static_cast<uint64_t>(word()) << 32) % n;
  }
  // Uniform in [0, 1).
  float unit_float() { return std::bit_cast<float>((word() & 0x7fffffu) | 0x3f800000u) - 1.0F; }
  double unit_double() {
    const uint64_t high = word() & 0xfffffu;
    return std::bit_cast<double>(high << 32 | word() | (uint64_t{1023} << 52)) - 1.0;
  }

 private:
  Philox stream_;
  Philox::Block block_ = {};
  uint64_t at_ = 0;
};

class CandidateSampler {
 public:
  virtual ~CandidateSampler() = default;
  virtual int64_t sample(RandomWords& words) const = 0;
  // Of a class in the range.
  virtual double probability(int64_t value) const = 0;
  // How many classes may be drawn at all.
  virtual int64_t choices() const = 0;
};

std::unique_ptr<CandidateSampler> uniform_sampler(int64_t range);
std::unique_ptr<CandidateSampler> log_uniform_sampler(int64_t range);

// What FixedUnigramCandidateSampler says.
struct FixedUnigram {
  int64_t range;
  std::string vocab_file;
  std::span<const double> unigrams;
  double distortion;
  int64_t reserved, num_shards, shard;
};
// Errors: InvalidArgument for weights that are no numbers, negative, all zero or not as many as the
// range wants; as files have them.
std::unique_ptr<CandidateSampler> fixed_unigram_sampler(const FixedUnigram& what);

// Counts of classes, the state of LearnedUnigramCandidateSampler. Whoever samples or counts holds
// its mutex.
class LearnedUnigram final : public Resource, public CandidateSampler {
 public:
  // Errors: ResourceExhausted.
  explicit LearnedUnigram(int64_t range);
  const char* kind() const override { return "counts of a unigram sampler"; }
  int64_t sample(RandomWords& words) const override;
  double probability(int64_t value) const override;
  int64_t choices() const override { return range_; }
  void count(int64_t value);
  ForkMutex& mutex() { return mutex_; }

 private:
  int64_t range_, total_;
  Tensor sums_;  // a Fenwick tree: element i - 1 is the sum of the (i & -i) counts up to i
  ForkMutex mutex_;
};

}  // namespace treenail::host
