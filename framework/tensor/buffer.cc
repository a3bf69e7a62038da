// SPDX-License-Identifier: Apache-2.0
// The kinds of buffer. A small owned buffer and its bytes are one block of the allocator;
// large ones keep the bytes in a block of their own, because header plus a round size would fall
// into the next size class. Owned ones count for the account of the thread that makes them.
#include "framework/tensor/buffer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "framework/device/device.h"
#include "framework/device/memory_account.h"
#include "framework/tensor/charged.h"
#include "framework/tensor/prepacked.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/variant.h"

namespace treenail {
namespace {

constexpr size_t kHeader = 64;  // keeps the bytes behind it aligned like any block
constexpr size_t kLargestJoint = 16 << 10;

class OwnedBuffer final : public Buffer {
 public:
  // `account`: null, or where the bytes are charged already.
  OwnedBuffer(void* data, size_t bytes, DType dtype, bool joint, MemoryAccount* account)
      : Buffer(data, bytes, Kind::kOwned), dtype_(dtype), joint_(joint), account_(account) {}

  // The object's memory came from the allocator, which wants the size back.
  static void operator delete(OwnedBuffer* buffer, std::destroying_delete_t) {
    const size_t own_block = buffer->joint_ ? kHeader + buffer->bytes() : kHeader;
    const size_t charge = charge_of(buffer->bytes());
    MemoryAccount* const account = buffer->account_.load(std::memory_order_relaxed);
    buffer->~OwnedBuffer();
    Allocator::host().deallocate(buffer, own_block);
    if (account != nullptr) account->discharge(charge);
  }

  static size_t charge_of(size_t bytes) { return kHeader + bytes; }
  bool is_charged() const { return account_.load(std::memory_order_relaxed) != nullptr; }
  // Errors: ResourceExhausted.
  void charge_to(MemoryAccount& account) {
    if (is_charged()) return;
    account.charge(charge_of(bytes()));
    MemoryAccount* nobody = nullptr;
    if (!account_.compare_exchange_strong(nobody, &account, std::memory_order_relaxed))
      account.discharge(charge_of(bytes()));
  }

 protected:
  ~OwnedBuffer() override {
    const size_t count = bytes() / dtype_size(dtype_);
    if (dtype_ == DType::kString) {
      std::destroy_n(static_cast<StringElement*>(data()), count);
    } else if (dtype_ == DType::kResource) {
      std::destroy_n(static_cast<ResourceElement*>(data()), count);
    } else if (dtype_ == DType::kVariant) {
      std::destroy_n(static_cast<VariantElement*>(data()), count);
    }
    if (!joint_) Allocator::host().deallocate(data(), bytes());
  }

 private:
  DType dtype_;
  bool joint_;  // the bytes lie behind this object
  std::atomic<MemoryAccount*> account_;
};

static_assert(sizeof(OwnedBuffer) <= kHeader);

class BorrowedBuffer final : public Buffer, public FromAllocator {
 public:
  BorrowedBuffer(void* data, size_t bytes, Release release, void* argument)
      : Buffer(data, bytes, Kind::kBorrowed), release_(release), argument_(argument) {}

 protected:
  ~BorrowedBuffer() override {
    if (release_ != nullptr) release_(argument_);
  }

 private:
  Release release_;
  void* argument_;
};

class ArenaBuffer final : public Buffer {
 public:
  ArenaBuffer(void* data, size_t bytes, Device* device)
      : Buffer(data, bytes, Kind::kArena, device) {}
};

class DeviceBuffer final : public Buffer, public FromAllocator {
 public:
  DeviceBuffer(size_t bytes, Device& device)
      : Buffer(device.allocate(bytes), bytes, Kind::kOwned, &device) {
    try {
      charge_.emplace(MemoryAccount::current(), bytes);
    } catch (...) {
      device.deallocate(data(), bytes);
      throw;
    }
  }

 protected:
  ~DeviceBuffer() override { device()->deallocate(data(), bytes()); }

 private:
  std::optional<MemoryCharge> charge_;
};

// What stands for the memory of a device in a buffer: of the host nothing does.
Device* not_host(Device* device) {
  return device == nullptr || device->is_host() ? nullptr : device;
}

size_t checked_bytes(DType dtype, int64_t elements) {
  const size_t size = dtype_size(dtype);
  int64_t bytes = 0;
  if (size == 0) throw invalid_argument("a buffer needs a dtype; got ", dtype);
  if (elements < 0 || __builtin_mul_overflow(elements, static_cast<int64_t>(size), &bytes)) {
    throw invalid_argument(elements, " elements of ", dtype, " exceed 2^63 - 1 bytes");
  }
  return static_cast<size_t>(bytes);
}

}  // namespace

Buffer::~Buffer() { delete forms_.load(std::memory_order_acquire); }

void Buffer::keep_prepacked() {
  if (kind_ == Kind::kOwned) keeps_prepacked_.store(true, std::memory_order_release);
}

void Buffer::forget_prepacked() {
  keeps_prepacked_.store(false, std::memory_order_release);
  if (PrepackedForms* const forms = forms_.load(std::memory_order_acquire)) forms->clear();
}

PrepackedForms* Buffer::prepacked() {
  if (!keeps_prepacked()) return nullptr;
  PrepackedForms* found = forms_.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  auto made = std::make_unique<PrepackedForms>();
  if (forms_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
    found = made.release();
  return found;
}

IntrusivePtr<Buffer> Buffer::allocate(DType dtype, int64_t elements, Device* device) {
  const size_t bytes = checked_bytes(dtype, elements);
  if (device != nullptr && !device->is_host() && is_plain(dtype))
    return IntrusivePtr<Buffer>(new DeviceBuffer(bytes, *device));
  Allocator& allocator = Allocator::host();
  const bool joint = bytes <= kLargestJoint;
  MemoryAccount* const account = MemoryAccount::current();
  if (account != nullptr) account->charge(OwnedBuffer::charge_of(bytes));
  void* separate = nullptr;
  void* own = nullptr;
  try {
    // The large block first: it is the one that may be refused.
    if (!joint) separate = allocator.allocate(bytes);
    own = allocator.allocate(joint ? kHeader + bytes : kHeader);
  } catch (...) {
    allocator.deallocate(separate, bytes);
    if (account != nullptr) account->discharge(OwnedBuffer::charge_of(bytes));
    throw;
  }
  void* data = joint ? static_cast<char*>(own) + kHeader : separate;
  if (!is_plain(dtype)) std::memset(data, 0, bytes);  // null elements
  return IntrusivePtr<Buffer>(new (own) OwnedBuffer(data, bytes, dtype, joint, account));
}

IntrusivePtr<Buffer> Buffer::borrow(const void* data, size_t bytes, Release release,
                                    void* argument) {
  return IntrusivePtr<Buffer>(
      new BorrowedBuffer(const_cast<void*>(data), bytes, release, argument));
}

IntrusivePtr<Buffer> Buffer::arena(void* data, size_t bytes, Device* device) {
  return IntrusivePtr<Buffer>(new ArenaBuffer(data, bytes, not_host(device)));
}

Tensor charged(Tensor value, MemoryAccount& account) {
  Buffer* const buffer = value.buffer().get();
  if (buffer == nullptr || buffer->kind() != Buffer::Kind::kOwned || buffer->device() != nullptr)
    return value;
  auto& owned = static_cast<OwnedBuffer&>(*buffer);
  if (owned.is_charged()) return value;
  if (value.dtype() != DType::kString) {
    owned.charge_to(account);
    return value;
  }
  const MemoryScope scope(&account);
  Tensor copy(DType::kString, value.shape());
  for (int64_t i = 0; i < value.num_elements(); ++i)
    copy.data<StringElement>()[i] = StringElement(value.data<StringElement>()[i].view());
  return copy;
}

}  // namespace treenail
