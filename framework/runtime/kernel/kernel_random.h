// SPDX-License-Identifier: Apache-2.0
// Where a random kernel's numbers come from: a stream that an op continues with every execution, or
// one its seeds spell.
#pragma once

#include <cstdint>

#include "framework/base/philox.h"
#include "framework/base/system_seed.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail {

// The stream of a stateful op: (seed, seed2) as TensorFlow 1 uses them, or one of the system's
// choice when both are 0.
class CountedStream {
 public:
  explicit CountedStream(const PrepareContext& p)
      : seed_(static_cast<uint64_t>(p.op().get_int("seed"))),
        seed2_(static_cast<uint64_t>(p.op().get_int("seed2"))),
        counter_(p.random_counter()) {
    if (seed_ != 0 || seed2_ != 0) return;
    seed_ = system_seed();
    seed2_ = system_seed();
  }
  // Takes the next `blocks` blocks; the stream begins at the first of them.
  Philox next(uint64_t blocks) const {
    return Philox(seed_, seed2_).skipped(counter_->reserve(blocks));
  }

 private:
  uint64_t seed_;
  uint64_t seed2_;
  IntrusivePtr<RandomCounter> counter_;
};

// The stream of a stateless op. One block scrambles the seeds, so that each of their bits matters.
inline Philox seeded_stream(int64_t seed, int64_t seed2) {
  const uint64_t a = static_cast<uint64_t>(seed);
  const uint64_t b = static_cast<uint64_t>(seed2);
  const Philox::Block mixed =
      Philox::generate({static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32),
                        static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32)},
                       {0x3ec8f720u, 0x02461e29u});
  return Philox(Philox::Block{0, 0, mixed[2], mixed[3]}, Philox::Key{mixed[0], mixed[1]});
}

}  // namespace treenail
