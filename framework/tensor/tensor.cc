// SPDX-License-Identifier: Apache-2.0
// Tensors: making, viewing, copying, and showing them in messages.
#include "framework/tensor/tensor.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/device/device.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor_bytes.h"
#include "framework/tensor/variant.h"

namespace treenail {
namespace {

template <class Element>
void copy_counted(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t at) {
  std::copy_n(from.data<Element>() + begin, count, to.data<Element>() + at);
}

template <class Real>
void append_value(std::string& out, const std::complex<Real>& value) {
  append_text(out, value.real());
  if (!(value.imag() < 0) && value.imag() == value.imag()) out += '+';
  append_text(out, value.imag());
  out += 'j';
}
void append_value(std::string& out, Float16 value) { append_text(out, static_cast<float>(value)); }
void append_value(std::string& out, BFloat16 value) { append_text(out, static_cast<float>(value)); }
void append_value(std::string& out, const StringElement& value) { out += quoted(value.view()); }
void append_value(std::string& out, const ResourceElement& value) {
  out += value.object ? value.object->kind() : "null";
}
void append_value(std::string& out, const VariantElement& value) {
  out += value.object ? value.object->type_name() : "null";
}
template <class T>
requires std::is_arithmetic_v<T>
void append_value(std::string& out, T value) { append_text(out, value); }

}  // namespace

int64_t tensor_bytes(DType dtype, const Shape& shape) {
  int64_t bytes = 0;
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  if (size == 0) throw invalid_argument("a tensor needs a dtype; got ", dtype);
  if (__builtin_mul_overflow(shape.num_elements(), size, &bytes)) {
    throw invalid_argument(dtype, " tensor of shape ", shape, " has more than 2^63 - 1 bytes");
  }
  return bytes;
}

Tensor::Tensor(DType dtype, const Shape& shape, Device* device) : shape_(shape), dtype_(dtype) {
  tensor_bytes(dtype, shape);
  buffer_ = Buffer::allocate(dtype, shape.num_elements(), device);
  data_ = buffer_->data();
}

Tensor::Tensor(DType dtype, const Shape& shape, IntrusivePtr<Buffer> buffer, size_t offset)
    : buffer_(std::move(buffer)), shape_(shape), dtype_(dtype) {
  const size_t held = buffer_ ? buffer_->bytes() : 0;
  if (!buffer_ || offset > held || bytes() > held - offset) {
    throw internal_error("a tensor ", dtype, shape, " from byte ", offset, " of a buffer of ",
                         held);
  }
  data_ = static_cast<char*>(buffer_->data()) + offset;
}

Tensor Tensor::zeros(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  // Elements that are pointers are null already.
  if (is_plain(dtype)) std::memset(tensor.raw(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    throw invalid_argument("a tensor of shape ", shape_, " with ", num_elements(),
                           " elements cannot have shape ", shape, " with ", shape.num_elements());
  }
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  if (rank() < 1 || begin < 0 || begin > end || end > dim(0)) {
    throw internal_error("rows [", begin, ", ", end, ") of shape ", shape_, " are asked for");
  }
  Tensor view = *this;
  view.shape_ = shape_.with_dim(0, end - begin);
  const int64_t row = dim(0) == 0 ? 0 : num_elements() / dim(0);
  view.data_ = static_cast<char*>(data_) + static_cast<size_t>(begin * row) * dtype_size(dtype_);
  return view;
}

Tensor Tensor::deep_copy() const {
  if (!defined()) return Tensor();
  Tensor copy(dtype_, shape_, device());
  if (Device* const there = device()) {
    there->copy(copy.raw(), raw(), bytes());
    return copy;
  }
  copy_range(*this, 0, num_elements(), copy, 0);
  return copy;
}

void copy_range(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t at) {
  const auto bytes = [size = dtype_size(from.dtype())](int64_t elements) {
    return static_cast<size_t>(elements) * size;
  };
  switch (from.dtype()) {
    case DType::kString:
      return copy_counted<StringElement>(from, begin, count, to, at);
    case DType::kResource:
      return copy_counted<ResourceElement>(from, begin, count, to, at);
    case DType::kVariant:
      return copy_counted<VariantElement>(from, begin, count, to, at);
    default:
      if (count == 0) return;
      std::memcpy(static_cast<std::byte*>(to.raw()) + bytes(at),
                  static_cast<const std::byte*>(from.raw()) + bytes(begin), bytes(count));
  }
}

std::string to_text(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return concat(tensor.dtype(), tensor.shape());
}

std::string tensor_values(const Tensor& tensor, int max_elements) {
  if (!tensor.defined()) return "undefined";
  const int64_t shown = std::min<int64_t>(tensor.num_elements(), std::max(max_elements, 0));
  std::string text = to_text(tensor);
  text += tensor.rank() == 0 ? " " : " [";
  dispatch<float, double, int32_t, uint8_t, int16_t, int8_t, StringElement, std::complex<float>,
           int64_t, bool, BFloat16, uint16_t, std::complex<double>, Float16, ResourceElement,
           VariantElement, uint32_t, uint64_t>(tensor.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < shown; ++i) {
      if (i > 0) text += ", ";
      append_value(text, tensor.data<T>()[i]);
    }
  });
  if (shown < tensor.num_elements()) text += shown > 0 ? ", ..." : "...";
  if (tensor.rank() > 0) text += "]";
  return text;
}

std::span<const int64_t> as_int64(const Tensor& tensor, std::span<int64_t> storage) {
  if (tensor.rank() > 1 || (tensor.dtype() != DType::kInt32 && tensor.dtype() != DType::kInt64)) {
    throw invalid_argument("needed is an int32 or int64 scalar or vector, got ", tensor);
  }
  const auto count = static_cast<size_t>(tensor.num_elements());
  if (count > storage.size()) {
    throw invalid_argument("needed are at most ", storage.size(), " numbers, got ", tensor);
  }
  if (tensor.dtype() == DType::kInt32) {
    std::copy_n(tensor.data<int32_t>(), count, storage.begin());
  } else {
    std::copy_n(tensor.data<int64_t>(), count, storage.begin());
  }
  return storage.first(count);
}

int64_t scalar_int64(const Tensor& tensor) {
  int64_t value = 0;
  if (tensor.num_elements() != 1) {
    throw invalid_argument("needed is one int32 or int64 number, got ", tensor);
  }
  as_int64(tensor, {&value, 1});
  return value;
}

void throw_dtype_not_handled(DType dtype) {
  throw unimplemented("not implemented for dtype ", dtype);
}

}  // namespace treenail
