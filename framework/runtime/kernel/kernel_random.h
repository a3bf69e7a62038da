// SPDX-License-Identifier: Apache-2.0
// Where a random kernel's numbers come from: a stream that an op continues with every execution, or
// one its seeds spell.
#pragma once

#include <cstdint>

#include "framework/base/philox.h"
#include "framework/base/system_seed.h"
#include "framework/runtime/kernel/kernel.h"

namespace treenail {

// Blocks that an execution takes for each output of a distribution, whatever it uses: TensorFlow
// 1's.
inline constexpr uint64_t kBlocksPerOutput = 256;
inline uint64_t blocks_for(int64_t outputs) {
  return static_cast<uint64_t>(outputs) * kBlocksPerOutput;
}
// For the outputs of a tensor whose extents `shape` holds, int32 or int64.
inline uint64_t blocks_for(const Tensor& shape) {
  uint64_t blocks = kBlocksPerOutput;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    blocks *= static_cast<uint64_t>(shape.dtype() == DType::kInt32 ? shape.data<int32_t>()[i]
                                                                   : shape.data<int64_t>()[i]);
  }
  return blocks;
}

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

// The stream of a stateless op.
inline Philox seeded_stream(int64_t seed, int64_t seed2) {
  return Philox(philox::seeded(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2)));
}

}  // namespace treenail
