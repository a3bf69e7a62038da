// SPDX-License-Identifier: Apache-2.0
// Attributes of a call, read by kernels and rules; and attributes for ops that a gradient emits.
#ifndef TREENAIL_OP_ATTRIBUTES_HPP_
#define TREENAIL_OP_ATTRIBUTES_HPP_

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "treenail/op/tensor.hpp"

namespace tn {
namespace op {

// What construction, inference and gradient contexts are: GetAttr("axis", &axis) and its call.
class CallReader {
 public:
  explicit CallReader(const tn_call* call) : call_(call) {}
  const tn_call* call() const { return call_; }
  std::string op() const { return host()->call_op(call_); }

  bool HasAttr(const char* name) const {
    detail::Held status;
    return host()->call_attr_kind(call_, name, status) != 0;
  }
  // T: an integer or floating-point type, bool, std::string, DataType, PartialTensorShape, Tensor,
  // or a std::vector of those. Errors: NotFound; InvalidArgument for another kind or an int that T
  // cannot hold.
  template <class T>
  Status GetAttr(const char* name, T* value) const {
    return detail::Guarded("GetAttr", [&] {
      Read(name, value);
      return Status();
    });
  }
  template <class T>
  T attr(const char* name) const {
    T value{};
    Read(name, &value);
    return value;
  }

 private:
  template <class T>
  void Read(const char* name, T* value) const {
    *value = Element<T>(name, 0);
  }
  template <class T>
  void Read(const char* name, std::vector<T>* values) const {
    detail::Held status;
    const tn_attr_kind kind = host()->call_attr_kind(call_, name, status);
    status.check();
    if ((kind & TN_ATTR_LIST) == 0)
      throw Error(errors::InvalidArgument("attribute \"", name, "\" is no list"));
    const size_t size = host()->call_attr_size(call_, name, status);
    status.check();
    values->clear();
    for (size_t i = 0; i < size; ++i) values->push_back(Element<T>(name, i));
  }

  template <class T>
  T Element(const char* name, size_t index) const {
    detail::Held status;
    if constexpr (std::is_same_v<T, bool>) {
      const int32_t value = host()->call_attr_bool(call_, name, index, status);
      status.check();
      return value != 0;
    } else if constexpr (std::is_same_v<T, DataType>) {
      const tn_dtype value = host()->call_attr_type(call_, name, index, status);
      status.check();
      return static_cast<DataType>(value);
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t value = host()->call_attr_int(call_, name, index, status);
      status.check();
      return Narrowed<T>(name, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      const double value = host()->call_attr_float(call_, name, index, status);
      status.check();
      return static_cast<T>(value);
    } else {
      return Compound(name, index, static_cast<T*>(nullptr));
    }
  }

  std::string Compound(const char* name, size_t index, std::string*) const {
    detail::Held status;
    size_t length = 0;
    const char* bytes = host()->call_attr_string(call_, name, index, &length, status);
    status.check();
    return std::string(bytes, length);
  }
  PartialTensorShape Compound(const char* name, size_t index, PartialTensorShape*) const {
    detail::Held status;
    const int64_t* dims = nullptr;
    const int32_t rank = host()->call_attr_shape(call_, name, index, &dims, status);
    status.check();
    return PartialTensorShape(dims, rank);
  }
  Tensor Compound(const char* name, size_t index, Tensor*) const {
    detail::Held status;
    const tn_tensor* value = host()->call_attr_tensor(call_, name, index, status);
    status.check();
    return Tensor(value);
  }

  template <class T>
  static T Narrowed(const char* name, int64_t value) {
    const bool fits = std::is_unsigned_v<T>
                          ? value >= 0 && static_cast<uint64_t>(value) <=
                                              static_cast<uint64_t>(std::numeric_limits<T>::max())
                          : value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                value <= static_cast<int64_t>(std::numeric_limits<T>::max());
    if (!fits)
      throw Error(errors::InvalidArgument("attribute \"", name, "\" is ", value,
                                          ", more than the plugin can hold"));
    return static_cast<T>(value);
  }

  const tn_call* call_;
};

// Attributes for GradientContext::Emit: Attrs().Set("transpose_a", true).
class Attrs {
 public:
  Attrs() : handle_(host()->attrs_new(), host()->attrs_delete) {
    if (!handle_) throw std::bad_alloc();
  }
  const tn_attrs* get() const { return handle_.get(); }

  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Attrs& Set(const char* name, T value) {
    if constexpr (std::is_same_v<T, bool>)
      host()->attrs_set_bool(handle_.get(), name, value ? 1 : 0);
    else if constexpr (std::is_integral_v<T>)
      host()->attrs_set_int(handle_.get(), name, static_cast<int64_t>(value));
    else
      host()->attrs_set_float(handle_.get(), name, static_cast<double>(value));
    return *this;
  }
  Attrs& Set(const char* name, DataType value) {
    host()->attrs_set_type(handle_.get(), name, value);
    return *this;
  }
  Attrs& Set(const char* name, std::string_view value) {
    host()->attrs_set_string(handle_.get(), name, value.data(), value.size());
    return *this;
  }
  Attrs& Set(const char* name, const char* value) { return Set(name, std::string_view(value)); }
  Attrs& Set(const char* name, const PartialTensorShape& value) {
    host()->attrs_set_shape(handle_.get(), name, value.data(), value.dims());
    return *this;
  }
  Attrs& Set(const char* name, const std::vector<int64_t>& values) {
    host()->attrs_set_ints(handle_.get(), name, values.data(), values.size());
    return *this;
  }
  Attrs& Set(const char* name, const std::vector<double>& values) {
    host()->attrs_set_floats(handle_.get(), name, values.data(), values.size());
    return *this;
  }
  Attrs& Set(const char* name, const std::vector<DataType>& values) {
    const std::vector<tn_dtype> numbers(values.begin(), values.end());
    host()->attrs_set_types(handle_.get(), name, numbers.data(), numbers.size());
    return *this;
  }
  Attrs& Set(const char* name, const std::vector<std::string>& values) {
    std::vector<const char*> bytes;
    std::vector<size_t> lengths;
    for (const std::string& value : values) {
      bytes.push_back(value.data());
      lengths.push_back(value.size());
    }
    host()->attrs_set_strings(handle_.get(), name, bytes.data(), lengths.data(), values.size());
    return *this;
  }

 private:
  std::shared_ptr<tn_attrs> handle_;
};

}  // namespace op
}  // namespace tn

#endif  // TREENAIL_OP_ATTRIBUTES_HPP_
