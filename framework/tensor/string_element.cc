// SPDX-License-Identifier: Apache-2.0
// The counted block behind a string element, from the tensor allocator so that strings count
// against the memory limit, and against that of whom the thread allocates for: then the account
// stands behind the bytes.
#include "framework/tensor/string_element.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "framework/device/allocator.h"
#include "framework/device/memory_account.h"

namespace treenail {

struct StringElement::Block {
  std::atomic<int64_t> count{1};
  size_t size : 63;
  size_t is_charged : 1;

  Block(size_t size, bool is_charged) : size(size), is_charged(is_charged) {}
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  size_t all_bytes() const {
    return sizeof(Block) + size + (is_charged != 0 ? sizeof(MemoryAccount*) : 0);
  }
};

StringElement::StringElement(std::string_view bytes) {
  if (bytes.empty()) return;
  char* memory = nullptr;
  *this = of_size(bytes.size(), &memory);
  std::memcpy(memory, bytes.data(), bytes.size());
}

StringElement StringElement::of_size(size_t bytes, char** memory) {
  MemoryAccount* const account = MemoryAccount::current();
  const size_t all = sizeof(Block) + bytes + (account == nullptr ? 0 : sizeof account);
  if (account != nullptr) account->charge(all);
  void* block = nullptr;
  try {
    block = Allocator::host().allocate(all);
  } catch (...) {
    if (account != nullptr) account->discharge(all);
    throw;
  }
  StringElement element;
  element.block_ = new (block) Block(bytes, account != nullptr);
  *memory = element.block_->bytes();
  if (account != nullptr) std::memcpy(*memory + bytes, &account, sizeof account);
  return element;
}

StringElement::StringElement(const StringElement& other) : block_(other.block_) {
  if (block_ != nullptr) block_->count.fetch_add(1, std::memory_order_relaxed);
}

StringElement::~StringElement() {
  if (block_ == nullptr || block_->count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const size_t bytes = block_->all_bytes();
  MemoryAccount* account = nullptr;
  if (block_->is_charged != 0)
    std::memcpy(&account, block_->bytes() + block_->size, sizeof account);
  block_->~Block();
  Allocator::host().deallocate(block_, bytes);
  if (account != nullptr) account->discharge(bytes);
}

std::string_view StringElement::view() const {
  return block_ == nullptr ? std::string_view() : std::string_view(block_->bytes(), block_->size);
}

}  // namespace treenail
