// SPDX-License-Identifier: Apache-2.0
// A list of tensors as one element of a variant tensor. Whoever reads a list shares it with others,
// so that it never changes; only who holds the one share there is may change it in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/base/intrusive_ptr.h"
#include "framework/device/allocator.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"
#include "framework/tensor/variant.h"

namespace treenail {

// Memory for a list's elements, whose number a program says, within the process's limit.
template <class T>
class HostMemory {
 public:
  using value_type = T;
  HostMemory() = default;
  template <class U>
  HostMemory(const HostMemory<U>&) {}  // NOLINT(google-explicit-constructor): as std::allocator
  T* allocate(size_t n) { return static_cast<T*>(Allocator::host().allocate(n * sizeof(T))); }
  void deallocate(T* data, size_t n) { Allocator::host().deallocate(data, n * sizeof(T)); }
  friend bool operator==(const HostMemory&, const HostMemory&) { return true; }
};

class TensorList final : public VariantObject {
 public:
  TensorList(DType dtype, PartialShape shape, int64_t size = 0)
      : element_dtype(dtype), element_shape(std::move(shape)), size_(size) {}
  ~TensorList() override = default;

  const char* type_name() const override { return "TensorList"; }
  int64_t size() const { return size_; }
  // Element i, of those there are; undefined where it is not set.
  const Tensor& at(int64_t i) const;
  // Outside of [first_set, end_set) nothing is set.
  int64_t first_set() const { return first_; }
  int64_t end_set() const { return first_ + static_cast<int64_t>(slots_.size()); }
  // Lists may hold lists; how deep, this one counted.
  int depth() const { return depth_; }

  // Errors: InvalidArgument for an element of another dtype or shape; ResourceExhausted for lists
  // in lists beyond what their release can bear.
  void check(const Tensor& element) const;
  // Element i, of those there are, becomes `element`, in memory that lasts and after check(); an
  // undefined one: not set. Takes, like resize(), a constant time on average. Errors:
  // ResourceExhausted.
  void set(int64_t i, Tensor element);
  // New elements are not set.
  void resize(int64_t size);

  IntrusivePtr<TensorList> copy() const;
  // By all copies of lists of this process: what they cost.
  static int64_t elements_copied();

  // The list that a handle is. Errors: InvalidArgument where it is none.
  static const TensorList& in(const Tensor& handle);
  // And of these elements. Errors: InvalidArgument for those of another dtype, too.
  static const TensorList& in(const Tensor& handle, DType element_dtype);

  DType element_dtype;
  PartialShape element_shape;     // holds for every element
  int64_t max_num_elements = -1;  // for pushing; -1: any number

 private:
  void reach(int64_t i);

  int64_t size_;
  int64_t first_ = 0;                              // the number of slots_[0]
  std::vector<Tensor, HostMemory<Tensor>> slots_;  // of elements that may be set
  int depth_ = 1;
};

// A scalar handle of the list.
Tensor handle_of(const IntrusivePtr<const TensorList>& list);

struct OwnList {
  Tensor handle;
  TensorList* list;
};
// The list of a handle, to be changed and given on: itself where the handle is the one share there
// is, else a copy. Errors: InvalidArgument where it is none.
OwnList own_list(Tensor handle);

}  // namespace treenail
