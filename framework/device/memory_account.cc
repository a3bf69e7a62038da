// SPDX-License-Identifier: Apache-2.0
#include "framework/device/memory_account.h"

#include <algorithm>

#include "framework/base/error.h"

namespace treenail {
namespace {

// More than any machine has: sums of these are no overflow.
constexpr size_t kAnything = size_t{1} << 61;

constinit thread_local MemoryAccount* of_thread = nullptr;

}  // namespace

MemoryAccount::~MemoryAccount() = default;

MemoryAccount* MemoryAccount::current() { return of_thread; }

void MemoryAccount::charge(size_t bytes) {
  const auto added = static_cast<int64_t>(std::min(bytes, kAnything));
  const int64_t before = held_.fetch_add(added, std::memory_order_relaxed);
  if (bytes >= kAnything || (limit_ > 0 && before > limit_ - added)) {
    held_.fetch_sub(added, std::memory_order_relaxed);
    throw resource_exhausted(whose_, " hold ", before, " bytes and ask for ", added,
                             " more; they may hold ", limit_, " (--max-held-bytes)");
  }
  ref();
}

void MemoryAccount::discharge(size_t bytes) noexcept {
  held_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  unref();
}

MemoryScope::MemoryScope(MemoryAccount* account) : before_(std::exchange(of_thread, account)) {}
MemoryScope::~MemoryScope() { of_thread = before_; }

}  // namespace treenail
