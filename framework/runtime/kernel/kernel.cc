// SPDX-License-Identifier: Apache-2.0
// The part of the kernel contract that is code: key functions, and splitting work over the thread
// pool.
#include "framework/runtime/kernel/kernel.h"

#include <algorithm>

#include "framework/base/interrupt.h"
#include "framework/base/thread_pool.h"
#include "framework/device/memory_account.h"

namespace treenail {

RandomCounter::~RandomCounter() = default;
PrepareContext::~PrepareContext() = default;
Kernel::~Kernel() = default;

const std::byte* RunContext::prepacked(int i, const PackKey& key, size_t bytes,
                                       FunctionRef<void(std::byte*)> make) const {
  const Tensor& tensor = input(i);
  Buffer* const buffer = tensor.buffer().get();
  if (buffer == nullptr || !buffer->keeps_prepacked() || tensor.raw() != buffer->data())
    return nullptr;
  return buffer->prepacked()->find(key, bytes, make);
}

void RunContext::parallel_for(int64_t total, int64_t grain, double cost_ns_per_item,
                              FunctionRef<void(int64_t, int64_t)> body) const {
  if (total <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces = (total - 1) / grain + 1;
  if (pieces == 1) {
    if (token_ != nullptr) token_->check();
    body(0, total);
    return;
  }
  const auto piece = [total, grain, body, account = MemoryAccount::current()](int64_t i) {
    const MemoryScope memory(account);
    poll_interrupt();
    const int64_t begin = i * grain;
    body(begin, total - begin < grain ? total : begin + grain);
  };
  ThreadPool::instance().run_chunks(pieces, piece, cost_ns_per_item * static_cast<double>(total),
                                    token_);
}

Tensor RunContext::take_input(int i) {
  const int32_t slot = input_slots_[i];
  const bool last = uses_ != nullptr && uses_[slot].load(std::memory_order_acquire) == 1;
  return last ? std::move(values_[slot]) : values_[slot];
}

void RunContext::run_chunks(int64_t chunks, double cost_ns, FunctionRef<void(int64_t)> body) const {
  if (chunks <= 0) return;
  if (chunks == 1) {
    if (token_ != nullptr) token_->check();
    body(0);
    return;
  }
  const auto chunk = [body, account = MemoryAccount::current()](int64_t i) {
    const MemoryScope memory(account);
    poll_interrupt();
    body(i);
  };
  ThreadPool::instance().run_chunks(chunks, chunk, cost_ns, token_);
}

}  // namespace treenail
