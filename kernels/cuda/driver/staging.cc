// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/staging.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/driver/driver.h"

namespace treenail::cuda {
namespace {

constexpr size_t kSmallest = 4096;

}  // namespace

void* Staging::take(size_t bytes) {
  if (bytes > kMost) return nullptr;
  const std::lock_guard lock(mutex_);
  if (const auto found = free_.lower_bound(bytes); found != free_.end()) {
    void* const piece = found->second;
    free_.erase(found);
    return piece;
  }
  const size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  if (reserved_ + size > kMost) return nullptr;
  void* piece = nullptr;
  if (driver().cuMemHostAlloc(&piece, size, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
    return nullptr;
  reserved_ += size;
  pieces_[piece] = size;
  return piece;
}

void Staging::give_back(void* piece) noexcept {
  const std::lock_guard lock(mutex_);
  free_.emplace(pieces_.at(piece), piece);
}

}  // namespace treenail::cuda
