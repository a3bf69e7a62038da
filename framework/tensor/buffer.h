// SPDX-License-Identifier: Apache-2.0
// The bytes behind tensors, counted, in the memory of the host or of a device that the host must
// not touch. Owned buffers come from an allocator; borrowed ones (NumPy feeds, mapped files) are
// never written, never forwarded, and copied before they are stored; arena slices belong to a
// running plan's frame.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "framework/base/intrusive_ptr.h"
#include "framework/tensor/dtype.h"

namespace treenail {

class Device;
class PrepackedForms;

class Buffer : public RefCounted {
 public:
  enum class Kind : uint8_t { kOwned, kBorrowed, kArena };

  // Uninitialised for plain dtypes; null elements (empty string, no object) for counted ones.
  // `device`: whose memory; null or a CPU: the host's, where counted elements always lie. Errors:
  // ResourceExhausted, Unavailable.
  static IntrusivePtr<Buffer> allocate(DType dtype, int64_t elements, Device* device = nullptr);
  // Memory of somebody else; release(argument) is called when the last share ends, on whatever
  // thread that happens.
  using Release = void (*)(void* argument);
  static IntrusivePtr<Buffer> borrow(const void* data, size_t bytes, Release release,
                                     void* argument);
  // A slice of a frame's arena; outlived by the frame.
  static IntrusivePtr<Buffer> arena(void* data, size_t bytes, Device* device = nullptr);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Kind kind() const { return kind_; }
  // Null: it is host memory.
  Device* device() const { return device_; }

  // Other forms of the bytes may be kept (prepacked.h): whoever says so vouches that the bytes
  // change no more, or only after forget_prepacked(). Nothing happens unless the memory is owned.
  void keep_prepacked();
  // The caller's share is the only one.
  void forget_prepacked();
  bool keeps_prepacked() const { return keeps_prepacked_.load(std::memory_order_acquire); }
  // Null unless forms may be kept.
  PrepackedForms* prepacked();

 protected:
  Buffer(void* data, size_t bytes, Kind kind, Device* device = nullptr)
      : data_(data), bytes_(bytes), device_(device), kind_(kind) {}
  ~Buffer() override;

 private:
  void* data_;
  size_t bytes_;
  Device* device_;
  std::atomic<PrepackedForms*> forms_ = nullptr;  // made when first asked for
  Kind kind_;
  std::atomic<bool> keeps_prepacked_ = false;
};

}  // namespace treenail
