// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/handover.h"

#include <algorithm>
#include <utility>

#include "framework/runtime/kernel/kernel_fusion.h"

namespace treenail {
namespace {

class HandoverKernel final : public Kernel {
 public:
  HandoverKernel(std::unique_ptr<Kernel> giver, std::unique_ptr<Kernel> taker, int taker_inputs)
      : giver_(std::move(giver)), taker_(std::move(taker)), taker_inputs_(taker_inputs) {
    giver_scratch_ = (taker_->scratch_bytes + 63) / 64 * 64;
    scratch_bytes = giver_scratch_ + giver_->scratch_bytes;
    cost_ns = giver_->cost_ns + taker_->cost_ns;
  }

  void run(RunContext& c) const override {
    int32_t slots[kMostFusedInputs];  // join_by_handover() refuses more
    const int32_t* given = c.input_slots_;
    for (int i = 0; i < taker_inputs_; ++i)
      slots[i] = i == taker_->takes_over ? c.input_slots_[0] : *given++;  // that one is never read
    const auto give = [&](const BlockSink& sink) {
      RunContext giving = c;
      giving.input_slots_ = given;
      giving.scratch_ = c.scratch_ + giver_scratch_;
      giving.sink_ = &sink;
      giver_->run(giving);
    };
    const BlockStream stream(give);
    RunContext taking = c;
    taking.input_slots_ = slots;
    taking.stream_ = &stream;
    taker_->run(taking);
  }

 private:
  std::unique_ptr<Kernel> giver_, taker_;
  int taker_inputs_;
  size_t giver_scratch_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> join_by_handover(std::unique_ptr<Kernel>& giver,
                                         std::unique_ptr<Kernel>& taker, int taker_inputs) {
  if (taker_inputs > kMostFusedInputs) return nullptr;
  return std::make_unique<HandoverKernel>(std::move(giver), std::move(taker), taker_inputs);
}

}  // namespace treenail
