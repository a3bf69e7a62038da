// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/row_kernel.h"

#include <algorithm>
#include <utility>

#include "framework/runtime/kernel/kernel_fusion.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class RowKernel final : public Kernel {
 public:
  RowKernel(RowChain chain, std::vector<int64_t> offsets, int64_t scratch)
      : chain_(std::move(chain)),
        blocks_((chain_.rows + chain_.block_rows - 1) / chain_.block_rows),
        offsets_(std::move(offsets)),
        scratch_(scratch) {
    for (const RowStage& stage : chain_.stages) block_ns_ += stage.block->cost_ns;
    cost_ns = block_ns_ * static_cast<double>(chain_.rows) / static_cast<double>(chain_.block_rows);
  }

  void run(RunContext& c) const override {
    c.parallel_for(blocks_, 1, block_ns_, [&](int64_t begin, int64_t end) {
      alignas(64) std::byte buffer[kRowBufferBytes];  // make_row_kernel() holds to it
      for (int64_t i = begin; i < end; ++i) run_block(c, i, buffer);
    });
  }

 private:
  void run_block(RunContext& c, int64_t number, std::byte* buffer) const {
    Tensor values[kMostRowValues];  // make_row_kernel() holds to it
    const bool whole = (number + 1) * chain_.block_rows <= chain_.rows;
    const int64_t first = number * chain_.block_rows;
    const int count = static_cast<int>(chain_.values.size());
    for (int i = 0; i < count; ++i) {
      const RowValue& value = chain_.values[static_cast<size_t>(i)];
      const bool within = i >= chain_.inputs && i + 1 < count;
      const Tensor& outside = i < chain_.inputs ? c.input(i) : c.output(0);
      auto* const base = static_cast<std::byte*>(const_cast<void*>(outside.raw()));
      values[i] = Tensor(
          value.dtype, whole ? value.block : value.rest,
          within ? buffer + offsets_[static_cast<size_t>(i)] : base + first * value.row_bytes);
    }
    RunContext inner = c;
    inner.values_ = values;
    inner.scratch_ = buffer + scratch_;
    inner.output_slot_ = chain_.inputs;
    for (const RowStage& stage : chain_.stages) {
      inner.input_slots_ = stage.inputs.data();
      (whole ? stage.block : stage.rest)->run(inner);
      ++inner.output_slot_;
    }
  }

  RowChain chain_;
  int64_t blocks_;
  std::vector<int64_t> offsets_;  // in the buffer, by value
  int64_t scratch_;               // offset in the buffer
  double block_ns_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_row_kernel(RowChain chain) {
  std::vector<int64_t> offsets(chain.values.size());
  int64_t used = 0, scratch = 0;
  for (size_t i = static_cast<size_t>(chain.inputs); i + 1 < chain.values.size(); ++i) {
    offsets[i] = used;
    used += aligned(chain.block_rows * chain.values[i].row_bytes);
  }
  for (const RowStage& stage : chain.stages) {
    const Kernel* const rest = stage.rest != nullptr ? stage.rest.get() : stage.block.get();
    const size_t needed = std::max(stage.block->scratch_bytes, rest->scratch_bytes);
    scratch = std::max(scratch, static_cast<int64_t>(needed));
  }
  const bool fits = chain.stages.size() <= kMostRowStages &&
                    chain.values.size() <= kMostRowValues && used + scratch <= kRowBufferBytes;
  if (!fits) return nullptr;
  return std::make_unique<RowKernel>(std::move(chain), std::move(offsets), used);
}

}  // namespace treenail
