// SPDX-License-Identifier: Apache-2.0
// Whose memory is whose, where one process serves several who do not trust each other (a server's
// identities): whatever buffers and strings a thread allocates in the scope of an account count
// there, on whatever device, until they are freed, by whom and where ever. Threads without an
// account count nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/base/intrusive_ptr.h"

namespace treenail {

class MemoryAccount final : public RefCounted {
 public:
  // `whose`: the beginning of what a refusal says. `limit`: bytes; 0: none.
  MemoryAccount(std::string whose, int64_t limit) : whose_(std::move(whose)), limit_(limit) {}

  // Of this thread; null: none.
  static MemoryAccount* current();

  // Keeps the account until as much is given back. Errors: ResourceExhausted.
  void charge(size_t bytes);
  void discharge(size_t bytes) noexcept;
  int64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  friend class MemoryScope;
  ~MemoryAccount() override;

  const std::string whose_;
  const int64_t limit_;
  std::atomic<int64_t> held_{0};
};

// For its life this thread allocates for `account`; null: for nobody.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryAccount* account);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryAccount* const before_;
};

// A charge of its own, of what no buffer stands for.
class MemoryCharge {
 public:
  // `account`: may be null. Errors: ResourceExhausted.
  MemoryCharge(MemoryAccount* account, size_t bytes) : account_(account), bytes_(bytes) {
    if (account_ != nullptr) account_->charge(bytes_);
  }
  ~MemoryCharge() {
    if (account_ != nullptr) account_->discharge(bytes_);
  }
  MemoryCharge(const MemoryCharge&) = delete;
  MemoryCharge& operator=(const MemoryCharge&) = delete;

 private:
  MemoryAccount* const account_;
  const size_t bytes_;
};

}  // namespace treenail
