// SPDX-License-Identifier: Apache-2.0
// Delays and lost connections by chance, the same for a seed as far as threads come in the same
// order.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>

#include "tests/transport/memory_transport.h"

namespace treenail::test {

class RandomFates final : public Fates {
 public:
  struct Chances {
    uint64_t seed = 0;
    int cuts = 0;              // in 10,000 messages
    int silences = 0;          // likewise
    int most_faults = 0;       // after these all goes well
    int most_delay_us = 1000;  // of a message; one in 50 takes ten times as long
  };
  explicit RandomFates(const Chances& chances)
      : chances_(chances), left_(chances.most_faults), random_(chances.seed) {}

  Fate of(const Passing& /*passing*/) override {
    const std::lock_guard lock(mutex_);
    Fate fate;
    const auto most = static_cast<uint64_t>(chances_.most_delay_us);
    if (most > 0) fate.after = std::chrono::microseconds(random_() % most);
    if (random_() % 50 == 0) fate.after *= 10;
    const int lot = static_cast<int>(random_() % 10'000);
    if (left_ == 0 || lot >= chances_.cuts + chances_.silences) return fate;
    --left_;
    fate.kind = lot < chances_.cuts ? Fate::Kind::kCut : Fate::Kind::kSilent;
    return fate;
  }
  int left() {
    const std::lock_guard lock(mutex_);
    return left_;
  }

 private:
  const Chances chances_;
  std::mutex mutex_;  // guards what follows
  int left_;
  std::mt19937_64 random_;
};

}  // namespace treenail::test
