// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/driver/pinned.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "framework/base/error.h"
#include "tests/simulated/memory.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

constexpr std::align_val_t kAlignment{4096};

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

void* Pinned::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (fail_in_ > 0 && --fail_in_ == 0) return nullptr;
  void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (memory == nullptr) return nullptr;
  std::memset(memory, simulated::kPoison, bytes);
  blocks_[address(memory)] = {bytes, false};
  return memory;
}

bool Pinned::retire(void* memory) {
  {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address(memory));
    if (block != blocks_.end() && !std::exchange(block->second.retired, true)) return true;
  }
  simulated::violation(concat("simulated CUDA: cuMemFreeHost frees ", simulated::hex(memory),
                              ", which is no block of pinned memory, or was freed before"));
  return false;
}

void Pinned::release(void* memory) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(address(memory));
  ::operator delete(memory, kAlignment);
}

bool Pinned::holds(const void* at, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address(at));
  if (after == blocks_.begin()) return false;
  const auto& [begin, block] = *std::prev(after);
  const size_t offset = address(at) - begin;
  return !block.retired && offset <= block.bytes && bytes <= block.bytes - offset;
}

bool Pinned::overlaps(const void* at, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(blocks_, [&](const auto& it) {
    return address(at) < it.first + it.second.bytes && it.first < address(at) + bytes;
  });
}

int64_t Pinned::blocks() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(blocks_, [](const auto& it) { return !it.second.retired; });
}

void Pinned::fail_allocation(int64_t nth) {
  const std::lock_guard lock(mutex_);
  fail_in_ = nth;
}

}  // namespace treenail::cuda_sim
