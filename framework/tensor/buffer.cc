// SPDX-License-Identifier: Apache-2.0
// The kinds of buffer. A small owned buffer and its bytes are one block of the allocator;
// large ones keep the bytes in a block of their own, because header plus a round size would fall
// into the next size class.
#include "framework/tensor/buffer.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "framework/device/device.h"
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
  OwnedBuffer(void* data, size_t bytes, DType dtype, bool joint)
      : Buffer(data, bytes, Kind::kOwned), dtype_(dtype), joint_(joint) {}

  // The object's memory came from the allocator, which wants the size back.
  static void operator delete(OwnedBuffer* buffer, std::destroying_delete_t) {
    const size_t own_block = buffer->joint_ ? kHeader + buffer->bytes() : kHeader;
    buffer->~OwnedBuffer();
    Allocator::host().deallocate(buffer, own_block);
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
      : Buffer(device.allocate(bytes), bytes, Kind::kOwned, &device) {}

 protected:
  ~DeviceBuffer() override { device()->deallocate(data(), bytes()); }
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
  const size_t own_block = joint ? kHeader + bytes : kHeader;
  // The large block first: it is the one that may be refused.
  void* separate = joint ? nullptr : allocator.allocate(bytes);
  void* own = nullptr;
  try {
    own = allocator.allocate(own_block);
  } catch (...) {
    allocator.deallocate(separate, bytes);
    throw;
  }
  void* data = joint ? static_cast<char*>(own) + kHeader : separate;
  if (!is_plain(dtype)) std::memset(data, 0, bytes);  // null elements
  return IntrusivePtr<Buffer>(new (own) OwnedBuffer(data, bytes, dtype, joint));
}

IntrusivePtr<Buffer> Buffer::borrow(const void* data, size_t bytes, Release release,
                                    void* argument) {
  return IntrusivePtr<Buffer>(
      new BorrowedBuffer(const_cast<void*>(data), bytes, release, argument));
}

IntrusivePtr<Buffer> Buffer::arena(void* data, size_t bytes, Device* device) {
  return IntrusivePtr<Buffer>(new ArenaBuffer(data, bytes, not_host(device)));
}

}  // namespace treenail
