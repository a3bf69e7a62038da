// SPDX-License-Identifier: Apache-2.0
// The bytes behind tensors, counted. Owned buffers come from the allocator; borrowed ones (NumPy
// feeds, mapped files) are never written, never forwarded, and copied before they are stored; arena
// slices belong to a running plan's frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/intrusive_ptr.h"
#include "framework/tensor/dtype.h"

namespace treenail {

class Buffer : public RefCounted {
 public:
  enum class Kind : uint8_t { kOwned, kBorrowed, kArena };

  // Uninitialised for plain dtypes; null elements (empty string, no object) for counted ones.
  // Errors: ResourceExhausted.
  static IntrusivePtr<Buffer> allocate(DType dtype, int64_t elements);
  // Memory of somebody else; release(argument) is called when the last share ends, on whatever
  // thread that happens.
  using Release = void (*)(void* argument);
  static IntrusivePtr<Buffer> borrow(const void* data, size_t bytes, Release release,
                                     void* argument);
  // A slice of a frame's arena; outlived by the frame.
  static IntrusivePtr<Buffer> arena(void* data, size_t bytes);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Kind kind() const { return kind_; }

 protected:
  Buffer(void* data, size_t bytes, Kind kind) : data_(data), bytes_(bytes), kind_(kind) {}
  ~Buffer() override = default;

 private:
  void* data_;
  size_t bytes_;
  Kind kind_;
};

}  // namespace treenail
