// SPDX-License-Identifier: Apache-2.0
// A producer and a consumer as one kernel: what is between them goes from one to the other block by
// block, in cache, and no memory holds the whole. Either the consumer has a prologue, by which it
// pulls the blocks that it is about to read (a reduction from an element-wise group), or the
// producer has an epilogue, to which it pushes each block that it has finished (a product to an
// update of variables). Bits are those of the two kernels one after the other. The runtime knows
// the Fuser's functions alone (kernel_fusion.h).
#pragma once

#include <cstdint>
#include <memory>

#include "framework/base/function_ref.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_fusion.h"

namespace treenail::host {

// Elements of a value: `rows` runs of `count` elements, `stride` elements from one to the next.
struct Block {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t rows = 1;
  int64_t stride = 0;
};

// Uses up the elements of a block, its rows one behind the other.
using Epilogue = FunctionRef<void(const Block& block, const void* elements)>;

class BlockStream;

class BlockKernel : public Kernel {
 public:
  ~BlockKernel() override;
  enum class Stream : uint8_t { kNone, kPushed, kPulled };

  // As a producer of output 0: which of the next two functions it has.
  Stream produces = Stream::kNone;
  double pull_ns = 0;  // per element, about
  // In place of run(): each element goes through the epilogue exactly once, in blocks of any order,
  // from several threads; the output is left alone.
  virtual void push(RunContext& c, const Epilogue& epilogue) const;
  // Computes elements [begin, end) on the calling thread, to memory aligned to 64 bytes.
  virtual void pull(RunContext& c, int64_t begin, int64_t end, void* to) const;

  // As a consumer: the kind of stream that may stand for one of its inputs, and which input.
  Stream takes = Stream::kNone;
  int streamed_input = -1;
  // In place of run(): that input is in no memory.
  virtual void consume(RunContext& c, const BlockStream& stream) const;
};

// What a producer computes, for its consumer.
class BlockStream {
 public:
  BlockStream(const BlockKernel& producer, const RunContext& c) : producer_(producer), c_(c) {}
  double pull_ns() const { return producer_.pull_ns; }
  void push(const Epilogue& epilogue) const;
  void pull(int64_t begin, int64_t end, void* to) const;

 private:
  const BlockKernel& producer_;
  RunContext c_;
};

// As in Fuser.
int streamed_input(const Kernel& kernel);
std::unique_ptr<Kernel> compose(std::unique_ptr<Kernel>& producer, int producer_inputs,
                                std::unique_ptr<Kernel>& consumer, int consumer_inputs);

}  // namespace treenail::host
