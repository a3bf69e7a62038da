// SPDX-License-Identifier: Apache-2.0
// A dense, row-major tensor: dtype, shape and a share of a buffer. Copying a Tensor shares the
// bytes. The only views are another shape over the same bytes and a range of the first axis.
// Kernels may assume element alignment only.
#pragma once

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "framework/tensor/buffer.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace treenail {

class Tensor {
 public:
  Tensor() = default;  // not defined(): dtype kInvalid, no buffer
  // Fresh memory, uninitialised for plain dtypes; `device` as in Buffer::allocate(). Errors:
  // InvalidArgument (byte size overflows), ResourceExhausted, Unavailable.
  Tensor(DType dtype, const Shape& shape, Device* device = nullptr);
  // Bytes of `buffer` from `offset`; the caller vouches that they hold shape.num_elements()
  // elements.
  Tensor(DType dtype, const Shape& shape, IntrusivePtr<Buffer> buffer, size_t offset = 0);

  // Elements in memory of somebody else's, who outlives all shares: of a kernel inside another.
  Tensor(DType dtype, const Shape& shape, void* elements)
      : data_(elements), shape_(shape), dtype_(dtype) {}

  template <class T>
  static Tensor scalar(const T& value) {
    Tensor t(dtype_of<T>, Shape());
    *t.data<T>() = value;
    return t;
  }
  template <class T>
  static Tensor vector(std::span<const T> values) {
    Tensor t(dtype_of<T>, Shape({static_cast<int64_t>(values.size())}));
    for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
    return t;
  }
  template <class T>
  static Tensor vector(std::initializer_list<T> values) {
    return vector(std::span<const T>(values.begin(), values.size()));
  }
  static Tensor zeros(DType dtype, const Shape& shape);

  bool defined() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_.dim(axis); }
  int64_t num_elements() const { return shape_.num_elements(); }
  size_t bytes() const { return static_cast<size_t>(num_elements()) * dtype_size(dtype_); }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  // T must match dtype() (asserted).
  template <class T>
  T* data() {
    assert(dtype_of<T> == dtype_);
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* data() const {
    assert(dtype_of<T> == dtype_);
    return static_cast<const T*>(data_);
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(num_elements())};
  }

  // The same bytes under another shape. Errors: InvalidArgument unless the element counts agree.
  Tensor reshaped(const Shape& shape) const;
  // Rows [begin, end) of the first axis, sharing bytes. Requires rank >= 1 and 0 <= begin <= end <=
  // dim(0).
  Tensor rows(int64_t begin, int64_t end) const;
  // In the same memory; on a device with a queue, the copy is queued.
  Tensor deep_copy() const;

  const IntrusivePtr<Buffer>& buffer() const { return buffer_; }
  // Whose memory it is; null: the host's.
  Device* device() const { return buffer_ ? buffer_->device() : nullptr; }
  // Owned memory nobody else shares, of which no other forms are kept: may be written in place,
  // stored or handed out.
  bool exclusive() const {
    return buffer_ && buffer_->kind() == Buffer::Kind::kOwned && buffer_->unique() &&
           !buffer_->keeps_prepacked();
  }
  bool borrowed() const { return buffer_ && buffer_->kind() == Buffer::Kind::kBorrowed; }

 private:
  IntrusivePtr<Buffer> buffer_;
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kInvalid;
};

// Elements [begin, begin + count) of `from` over those of `to` from number `at` on; one dtype, and
// room enough.
void copy_range(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t at);

// "float32[2,3]": for error messages. tensor_values() shows the first elements too.
std::string to_text(const Tensor& tensor);
std::string tensor_values(const Tensor& tensor, int max_elements = 8);

// Integer tensors (int32 or int64) as int64_t: shapes, axes, sizes. Errors: InvalidArgument for
// another dtype or rank > 1.
std::span<const int64_t> as_int64(const Tensor& tensor, std::span<int64_t> storage);
int64_t scalar_int64(const Tensor& tensor);

// Calls f.template operator()<T>() with the C++ type of `dtype` out of Ts; Errors: Unimplemented
// when none matches.
[[noreturn]] void throw_dtype_not_handled(DType dtype);
template <class... Ts, class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  using R = std::common_type_t<decltype(f.template operator()<Ts>())...>;
  if constexpr (std::is_void_v<R>) {
    const bool hit = ((dtype == dtype_of<Ts> ? (f.template operator()<Ts>(), true) : false) || ...);
    if (!hit) throw_dtype_not_handled(dtype);
  } else {
    R result{};
    const bool hit =
        ((dtype == dtype_of<Ts> ? (result = f.template operator()<Ts>(), true) : false) || ...);
    if (!hit) throw_dtype_not_handled(dtype);
    return result;
  }
}

}  // namespace treenail
