// SPDX-License-Identifier: Apache-2.0
#include "framework/tensor/tensor_list.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "framework/base/error.h"

namespace treenail {
namespace {

// Who releases a list releases those in it, one call within another.
constexpr int kDeepest = 1000;

std::atomic<int64_t> copied{0};

int depth_of(const Tensor& element) {
  int depth = 0;
  if (element.dtype() != DType::kVariant) return depth;
  for (int64_t i = 0; i < element.num_elements(); ++i) {
    const VariantObject* const object = element.data<VariantElement>()[i].object.get();
    if (const auto* list = dynamic_cast<const TensorList*>(object))
      depth = std::max(depth, list->depth());
  }
  return depth;
}

}  // namespace

void TensorList::check(const Tensor& element) const {
  if (element.dtype() != element_dtype) {
    throw invalid_argument("Invalid data types; op elements ", element.dtype(),
                           " but list elements ", element_dtype);
  }
  if (!element_shape.compatible(element.shape())) {
    throw invalid_argument(
        "Tried to set a tensor with incompatible shape at a list index. Item "
        "element shape: ",
        element.shape(), " list shape: ", element_shape);
  }
  if (depth_of(element) >= kDeepest) {
    throw resource_exhausted("lists lie in lists ", kDeepest, " deep: no more is supported");
  }
}

const Tensor& TensorList::at(int64_t i) const {
  static const Tensor unset;
  return i >= first_ && i < end_set() ? slots_[static_cast<size_t>(i - first_)] : unset;
}

void TensorList::set(int64_t i, Tensor element) {
  if (!element.defined() && (i < first_ || i >= end_set())) return;
  depth_ = std::max(depth_, 1 + depth_of(element));
  reach(i);
  slots_[static_cast<size_t>(i - first_)] = std::move(element);
}

// Grows by as much as there is at least, at either end, so that a growth of one costs the same on
// average however long the list is.
void TensorList::reach(int64_t i) {
  if (slots_.empty()) first_ = i;
  if (i >= end_set()) slots_.resize(static_cast<size_t>(i - first_ + 1));
  if (i >= first_) return;
  const int64_t first = std::max<int64_t>(0, std::min(i, 2 * first_ - end_set()));
  std::vector<Tensor, HostMemory<Tensor>> slots(static_cast<size_t>(end_set() - first));
  std::move(slots_.begin(), slots_.end(), slots.begin() + (first_ - first));
  slots_ = std::move(slots);
  first_ = first;
}

void TensorList::resize(int64_t size) {
  size_ = size;
  if (size < end_set()) slots_.resize(static_cast<size_t>(std::max<int64_t>(0, size - first_)));
}

IntrusivePtr<TensorList> TensorList::copy() const {
  auto list = make_counted<TensorList>(element_dtype, element_shape, size_);
  list->max_num_elements = max_num_elements;
  list->first_ = first_;
  list->slots_ = slots_;
  list->depth_ = depth_;
  copied.fetch_add(static_cast<int64_t>(slots_.size()), std::memory_order_relaxed);
  return list;
}

int64_t TensorList::elements_copied() { return copied.load(std::memory_order_relaxed); }

const TensorList& TensorList::in(const Tensor& handle) {
  const VariantObject* const object =
      handle.rank() == 0 ? handle.data<VariantElement>()->object.get() : nullptr;
  const auto* const list = dynamic_cast<const TensorList*>(object);
  if (list == nullptr) {
    throw invalid_argument("Input handle is not a list. Saw: ", tensor_values(handle));
  }
  return *list;
}

const TensorList& TensorList::in(const Tensor& handle, DType element_dtype) {
  const TensorList& list = in(handle);
  if (list.element_dtype != element_dtype) {
    throw invalid_argument("Invalid data types; op elements ", element_dtype, " but list elements ",
                           list.element_dtype);
  }
  return list;
}

Tensor handle_of(const IntrusivePtr<const TensorList>& list) {
  Tensor handle(DType::kVariant, Shape());
  handle.data<VariantElement>()->object = list;
  return handle;
}

OwnList own_list(Tensor handle) {
  const TensorList& list = TensorList::in(handle);
  // The tensor's own share of its buffer, and the buffer's of the list.
  if (handle.exclusive() && list.unique())
    return {std::move(handle), const_cast<TensorList*>(&list)};
  const IntrusivePtr<TensorList> copy = list.copy();
  return {handle_of(copy), copy.get()};
}

}  // namespace treenail
