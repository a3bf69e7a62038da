// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/fusion/block_kernel.h"

#include <utility>

#include "framework/base/error.h"

namespace treenail::host {

using Stream = BlockKernel::Stream;

BlockKernel::~BlockKernel() = default;

void BlockKernel::push(RunContext&, const Epilogue&) const {
  throw internal_error("this kernel pushes no blocks");
}
void BlockKernel::pull(RunContext&, int64_t, int64_t, void*) const {
  throw internal_error("no blocks are pulled from this kernel");
}
void BlockKernel::consume(RunContext&, const BlockStream&) const {
  throw internal_error("this kernel reads memory alone");
}

void BlockStream::push(const Epilogue& epilogue) const {
  RunContext c = c_;
  producer_.push(c, epilogue);
}

void BlockStream::pull(int64_t begin, int64_t end, void* to) const {
  RunContext c = c_;
  producer_.pull(c, begin, end, to);
}

namespace {

class ComposedKernel final : public Kernel {
 public:
  ComposedKernel(std::unique_ptr<BlockKernel> producer, int producer_inputs,
                 std::unique_ptr<BlockKernel> consumer, int consumer_inputs)
      : producer_(std::move(producer)),
        consumer_(std::move(consumer)),
        producer_inputs_(producer_inputs),
        consumer_inputs_(consumer_inputs),
        producer_scratch_((consumer_->scratch_bytes + 63) / 64 * 64) {
    scratch_bytes = producer_scratch_ + producer_->scratch_bytes;
    cost_ns = producer_->cost_ns + consumer_->cost_ns;
  }

  void run(RunContext& c) const override {
    int32_t slots[kMostFusedInputs];  // compose() refuses more
    const int32_t* other = c.input_slots_ + producer_inputs_;
    for (int i = 0; i < consumer_inputs_; ++i)
      slots[i] = i == consumer_->streamed_input ? c.output_slot_ : *other++;  // never read
    RunContext producing = c;
    producing.scratch_ = c.scratch_ + producer_scratch_;
    RunContext consuming = c;
    consuming.input_slots_ = slots;
    consumer_->consume(consuming, BlockStream(*producer_, producing));
  }

 private:
  std::unique_ptr<BlockKernel> producer_, consumer_;
  int producer_inputs_, consumer_inputs_;
  size_t producer_scratch_;
};

std::unique_ptr<BlockKernel> released(std::unique_ptr<Kernel>& kernel) {
  return std::unique_ptr<BlockKernel>(static_cast<BlockKernel*>(kernel.release()));
}

}  // namespace

int streamed_input(const Kernel& kernel) {
  const auto* const consumer = dynamic_cast<const BlockKernel*>(&kernel);
  return consumer != nullptr ? consumer->streamed_input : -1;
}

std::unique_ptr<Kernel> compose(std::unique_ptr<Kernel>& producer, int producer_inputs,
                                std::unique_ptr<Kernel>& consumer, int consumer_inputs) {
  const auto* const from = dynamic_cast<const BlockKernel*>(producer.get());
  const auto* const to = dynamic_cast<const BlockKernel*>(consumer.get());
  const bool fit = from != nullptr && to != nullptr && to->takes != Stream::kNone &&
                   from->produces == to->takes && consumer_inputs <= kMostFusedInputs;
  if (!fit) return nullptr;
  return std::make_unique<ComposedKernel>(released(producer), producer_inputs, released(consumer),
                                          consumer_inputs);
}

}  // namespace treenail::host
