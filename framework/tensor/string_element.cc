// SPDX-License-Identifier: Apache-2.0
// The counted block behind a string element, from the tensor allocator so that strings count
// against the memory limit.
#include "framework/tensor/string_element.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

#include "framework/device/allocator.h"

namespace treenail {

struct StringElement::Block {
  std::atomic<int64_t> count{1};
  size_t size;

  explicit Block(size_t size) : size(size) {}
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

StringElement::StringElement(std::string_view bytes) {
  if (bytes.empty()) return;
  char* memory = nullptr;
  *this = of_size(bytes.size(), &memory);
  std::memcpy(memory, bytes.data(), bytes.size());
}

StringElement StringElement::of_size(size_t bytes, char** memory) {
  StringElement element;
  element.block_ = new (Allocator::host().allocate(sizeof(Block) + bytes)) Block(bytes);
  *memory = element.block_->bytes();
  return element;
}

StringElement::StringElement(const StringElement& other) : block_(other.block_) {
  if (block_ != nullptr) block_->count.fetch_add(1, std::memory_order_relaxed);
}

StringElement::~StringElement() {
  if (block_ == nullptr || block_->count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const size_t bytes = sizeof(Block) + block_->size;
  block_->~Block();
  Allocator::host().deallocate(block_, bytes);
}

std::string_view StringElement::view() const {
  return block_ == nullptr ? std::string_view() : std::string_view(block_->bytes(), block_->size);
}

}  // namespace treenail
