// SPDX-License-Identifier: Apache-2.0
// Shapes and tensors as kernels see them. A Tensor of a kernel's context is a view, valid as long
// as the context; one that was made (allocate_temp) holds its memory.
#ifndef TREENAIL_OP_TENSOR_HPP_
#define TREENAIL_OP_TENSOR_HPP_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "treenail/op/types.hpp"

namespace tn {
namespace op {

// A shape of which all, some or nothing is known: rank -1 and extents of -1 are unknown.
class PartialTensorShape {
 public:
  PartialTensorShape() = default;  // nothing is known
  PartialTensorShape(std::initializer_list<int64_t> dims) : known_(true), dims_(dims) {}
  explicit PartialTensorShape(std::vector<int64_t> dims) : known_(true), dims_(std::move(dims)) {}
  PartialTensorShape(const int64_t* dims, int rank)
      : known_(rank >= 0), dims_(dims, dims + (rank > 0 ? rank : 0)) {}
  bool unknown_rank() const { return !known_; }
  int dims() const { return known_ ? static_cast<int>(dims_.size()) : -1; }
  int64_t dim_size(int axis) const { return dims_.at(static_cast<size_t>(axis)); }
  const std::vector<int64_t>& dim_sizes() const { return dims_; }
  const int64_t* data() const { return dims_.data(); }
  bool IsFullyDefined() const {
    for (const int64_t dim : dims_)
      if (dim < 0) return false;
    return known_;
  }
  bool operator==(const PartialTensorShape& other) const {
    return known_ == other.known_ && dims_ == other.dims_;
  }
  bool operator!=(const PartialTensorShape& other) const { return !(*this == other); }
  std::string DebugString() const {
    if (!known_) return "<unknown>";
    std::string text = "[";
    for (const int64_t dim : dims_)
      text += (text.size() > 1 ? "," : "") + (dim < 0 ? std::string("?") : std::to_string(dim));
    return text + "]";
  }

 protected:
  bool known_ = false;
  std::vector<int64_t> dims_;
};

inline std::ostream& operator<<(std::ostream& out, const PartialTensorShape& shape) {
  return out << shape.DebugString();
}

class TensorShape : public PartialTensorShape {
 public:
  TensorShape() : PartialTensorShape(std::vector<int64_t>()) {}  // a scalar
  TensorShape(std::initializer_list<int64_t> dims) : PartialTensorShape(dims) {}
  explicit TensorShape(std::vector<int64_t> dims) : PartialTensorShape(std::move(dims)) {}
  TensorShape(const int64_t* dims, int rank) : PartialTensorShape(dims, rank < 0 ? 0 : rank) {}
  void AddDim(int64_t size) { dims_.push_back(size); }
  void set_dim(int axis, int64_t size) { dims_.at(static_cast<size_t>(axis)) = size; }
  // Errors: InvalidArgument for a negative extent, or more elements than can be counted.
  int64_t num_elements() const {
    int64_t count = 1;
    bool none = false;
    for (const int64_t dim : dims_) {
      if (dim < 0) throw Error(errors::InvalidArgument("shape ", *this, " has a negative extent"));
      none |= dim == 0;
    }
    for (const int64_t dim : dims_) {
      if (none) return 0;
      if (count > std::numeric_limits<int64_t>::max() / dim)
        throw Error(errors::InvalidArgument("shape ", *this, " has too many elements"));
      count *= dim;
    }
    return count;
  }
};

// Elements under N extents, row-major: m(i, j). T may be const.
template <class T, int N>
class TensorMap {
 public:
  TensorMap(T* data, const std::array<int64_t, N>& dims) : data_(data), dims_(dims) {}
  template <class... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N, "one index for each axis");
    const std::array<int64_t, N> at{{static_cast<int64_t>(index)...}};
    int64_t offset = 0;
    for (size_t axis = 0; axis < N; ++axis) offset = offset * dims_[axis] + at[axis];
    return data_[offset];
  }
  int64_t dimension(int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t size() const {
    int64_t count = 1;
    for (const int64_t dim : dims_) count *= dim;
    return count;
  }
  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size(); }

 private:
  T* data_;
  std::array<int64_t, N> dims_;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const tn_tensor* view) : tensor_(view) {}

  bool IsInitialized() const { return tensor_ != nullptr; }
  const tn_tensor* get() const { return tensor_; }
  DataType dtype() const { return static_cast<DataType>(host()->tensor_dtype(tensor_)); }
  int dims() const { return host()->tensor_rank(tensor_); }
  int64_t dim_size(int axis) const {
    if (axis < 0 || axis >= dims())
      throw Error(errors::OutOfRange("axis ", axis, " is not in [0, ", dims(), ")"));
    return host()->tensor_dims(tensor_)[axis];
  }
  TensorShape shape() const { return TensorShape(host()->tensor_dims(tensor_), dims()); }
  int64_t NumElements() const { return host()->tensor_num_elements(tensor_); }
  size_t TotalBytes() const { return host()->tensor_bytes(tensor_); }

  // Errors: InvalidArgument when the elements are no T; FailedPrecondition when a view of an input
  // is asked for elements to be written.
  template <class T>
  const T* data() const {
    CheckType(DataTypeToEnum<T>::value);
    return static_cast<const T*>(host()->tensor_data(tensor_));
  }
  template <class T>
  T* data() {
    CheckType(DataTypeToEnum<T>::value);
    if (written_ == nullptr && TotalBytes() != 0)
      throw Error(
          errors::FailedPrecondition("an input may only be read: take it as a const Tensor"));
    return static_cast<T*>(written_);
  }

  // Under N extents; errors as above, and InvalidArgument for another rank.
  template <class T, int N>
  TensorMap<const T, N> tensor() const {
    return TensorMap<const T, N>(data<T>(), Extents<N>());
  }
  template <class T, int N>
  TensorMap<T, N> tensor() {
    return TensorMap<T, N>(data<T>(), Extents<N>());
  }
  template <class T>
  TensorMap<const T, 1> flat() const {
    return TensorMap<const T, 1>(data<T>(), {{NumElements()}});
  }
  template <class T>
  TensorMap<T, 1> flat() {
    return TensorMap<T, 1>(data<T>(), {{NumElements()}});
  }
  template <class T>
  auto vec() const {
    return tensor<T, 1>();
  }
  template <class T>
  auto vec() {
    return tensor<T, 1>();
  }
  template <class T>
  auto matrix() const {
    return tensor<T, 2>();
  }
  template <class T>
  auto matrix() {
    return tensor<T, 2>();
  }
  // t.scalar<float>()()
  template <class T>
  auto scalar() const {
    return tensor<T, 0>();
  }
  template <class T>
  auto scalar() {
    return tensor<T, 0>();
  }

  // An element of a tensor of strings; valid until it is set again.
  std::string_view string(int64_t element) const {
    detail::Held status;
    size_t length = 0;
    const char* bytes = host()->tensor_string(tensor_, element, &length, status);
    status.check();
    return std::string_view(bytes, length);
  }
  // Only of an output.
  void set_string(int64_t element, std::string_view bytes) {
    if (run_ == nullptr)
      throw Error(errors::FailedPrecondition("strings are set in outputs alone"));
    detail::Held status;
    host()->run_set_string(run_, output_, element, bytes.data(), bytes.size(), status);
    status.check();
  }

 private:
  friend class OpKernelContext;

  void CheckType(DataType wanted) const {
    if (dtype() == wanted) return;
    throw Error(errors::InvalidArgument("the tensor is ", dtype(),
                                        ", its elements were asked for as ", wanted));
  }
  template <int N>
  std::array<int64_t, N> Extents() const {
    if (dims() != N)
      throw Error(errors::InvalidArgument("the tensor has shape ", shape(), ", rank ", N,
                                          " was asked for"));
    std::array<int64_t, N> extents{};
    for (size_t axis = 0; axis < N; ++axis) extents[axis] = host()->tensor_dims(tensor_)[axis];
    return extents;
  }

  const tn_tensor* tensor_ = nullptr;
  std::shared_ptr<tn_tensor> owned_;  // of allocate_temp
  void* written_ = nullptr;           // the elements, where they may be written
  tn_run_context* run_ = nullptr;     // of an output
  int32_t output_ = 0;
};

}  // namespace op
}  // namespace tn

#endif  // TREENAIL_OP_TENSOR_HPP_
