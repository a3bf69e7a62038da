// SPDX-License-Identifier: Apache-2.0
// A producer and a consumer as one kernel: which two fit, and what each of them is given.
#include "kernels/host/fusion/block_kernel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/tensor/tensor.h"

namespace treenail::host {
namespace {

using Stream = BlockKernel::Stream;
constexpr int64_t kElements = 6;

// Element i is i + input 0, pulled or pushed backwards in blocks of two.
class Counting final : public BlockKernel {
 public:
  explicit Counting(Stream how) {
    produces = how;
    scratch_bytes = 8;
    cost_ns = 3;
  }
  void run(RunContext& c) const override { pull(c, 0, kElements, c.output(0).raw()); }
  void pull(RunContext& c, int64_t begin, int64_t end, void* to) const override {
    for (int64_t i = begin; i < end; ++i)
      static_cast<int64_t*>(to)[i - begin] = i + *c.input(0).data<int64_t>();
  }
  void push(RunContext& c, const Epilogue& epilogue) const override {
    for (int64_t i = kElements - 2; i >= 0; i -= 2) {
      auto* const block = reinterpret_cast<int64_t*>(c.scratch());
      pull(c, i, i + 1, block);
      epilogue({i, 1, 1, 0}, block);
      pull(c, i + 1, i + 2, block);
      epilogue({i + 1, 1, 1, 0}, block);
    }
  }
};

// Of three inputs, the middle one streamed: the sum of it, weighted by input 0, and input 2.
class Weighing final : public BlockKernel {
 public:
  explicit Weighing(Stream how) {
    takes = how;
    streamed_input = 1;
    scratch_bytes = 8;
    cost_ns = 4;
  }
  void run(RunContext&) const override {}
  void consume(RunContext& c, const BlockStream& stream) const override {
    auto* const sum = reinterpret_cast<int64_t*>(c.scratch());
    *sum = 0;
    const auto add = [&](const Block& block, const void* elements) {
      const auto* from = static_cast<const int64_t*>(elements);
      for (int64_t i = 0; i < block.count; ++i)
        *sum += c.input(0).data<int64_t>()[block.begin + i] * from[i];
    };
    if (takes == Stream::kPushed) {
      stream.push(add);
    } else {
      alignas(64) int64_t pulled[kElements];
      stream.pull(0, kElements, pulled);
      add({0, kElements, 1, 0}, pulled);
    }
    *c.output(0).data<int64_t>() = *sum + *c.input(2).data<int64_t>();
  }
};

std::unique_ptr<Kernel> composed(Stream produces, Stream takes, int consumer_inputs = 3) {
  std::unique_ptr<Kernel> producer = std::make_unique<Counting>(produces);
  std::unique_ptr<Kernel> consumer = std::make_unique<Weighing>(takes);
  std::unique_ptr<Kernel> both = compose(producer, 1, consumer, consumer_inputs);
  EXPECT_EQ(producer == nullptr, both != nullptr) << "untouched where it is refused";
  EXPECT_EQ(consumer == nullptr, both != nullptr);
  return both;
}

TEST(Compose, InputsAreTheProducersThenTheConsumersOthers) {
  for (const Stream stream : {Stream::kPushed, Stream::kPulled}) {
    const std::unique_ptr<Kernel> both = composed(stream, stream);
    ASSERT_NE(both, nullptr);
    EXPECT_GE(both->scratch_bytes, 64u + 8u) << "that of both, each aligned";
    EXPECT_EQ(both->cost_ns, 7);
    std::vector<Tensor> values = {Tensor::scalar<int64_t>(10),
                                  Tensor::vector<int64_t>({1, 10, 100, 1000, 10000, 100000}),
                                  Tensor::scalar<int64_t>(7), Tensor::scalar<int64_t>(0)};
    const int32_t slots[] = {0, 1, 2};
    alignas(64) std::byte scratch[128];
    RunContext c;
    c.values_ = values.data();
    c.input_slots_ = slots;
    c.output_slot_ = 3;
    c.scratch_ = scratch;
    both->run(c);
    EXPECT_EQ(*values[3].data<int64_t>(), 10 + 110 + 1200 + 13000 + 140000 + 1500000 + 7);
  }
}

TEST(Compose, OneKindOfStreamIsNotTheOther) {
  EXPECT_EQ(composed(Stream::kPushed, Stream::kPulled), nullptr);
  EXPECT_EQ(composed(Stream::kPulled, Stream::kPushed), nullptr);
  EXPECT_EQ(composed(Stream::kNone, Stream::kNone), nullptr);
}

TEST(Compose, AConsumerOfTooManyInputsStaysApart) {
  EXPECT_NE(composed(Stream::kPulled, Stream::kPulled, kMostFusedInputs), nullptr);
  EXPECT_EQ(composed(Stream::kPulled, Stream::kPulled, kMostFusedInputs + 1), nullptr);
}

TEST(Compose, OtherKernelsTakeNoStream) {
  std::unique_ptr<Kernel> plain = make_kernel([](RunContext&) {});
  std::unique_ptr<Kernel> producer = std::make_unique<Counting>(Stream::kPulled);
  EXPECT_EQ(streamed_input(*plain), -1);
  EXPECT_EQ(compose(producer, 1, plain, 1), nullptr);
  EXPECT_EQ(compose(plain, 1, producer, 1), nullptr);
  EXPECT_NE(plain, nullptr);
}

TEST(Compose, WhatAKernelIsNotMadeForIsRefused) {
  const Weighing kernel(Stream::kPulled);
  RunContext c;
  EXPECT_THROW(kernel.pull(c, 0, 1, nullptr), Error);
  EXPECT_THROW(kernel.push(c, [](const Block&, const void*) {}), Error);
  const Counting producer(Stream::kPulled);
  EXPECT_THROW(producer.consume(c, BlockStream(producer, c)), Error);
}

}  // namespace
}  // namespace treenail::host
