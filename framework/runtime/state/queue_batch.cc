// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/queue_batch.h"

#include <algorithm>

namespace treenail {
namespace {

Shape largest(std::span<const QueueElement> elements, size_t component, const PartialShape& shape) {
  Extents extents;
  for (const int64_t extent : shape.dims()) extents.push_back(extent == kUnknown ? 0 : extent);
  for (const QueueElement& element : elements) {
    const Shape& own = element.values[component].shape();
    for (int axis = 0; axis < own.rank(); ++axis) {
      int64_t& extent = extents[static_cast<size_t>(axis)];
      extent = std::max(extent, own.dim(axis));
    }
  }
  return Shape(std::span<const int64_t>(extents.data(), extents.size()));
}

// Where in a tensor of shape `to` the runs of the last axis of one of shape `from` lie, one behind
// the other; `to` is at least as large along each axis.
class Runs {
 public:
  Runs(const Shape& from, const Shape& to) : from_(from), to_(to) {
    for (int axis = 0; axis < from.rank(); ++axis) index_.push_back(0);
  }
  int64_t place() const { return place_; }
  void next() {
    int64_t stride = 1;
    for (int axis = from_.rank() - 1; axis >= 0; --axis) {
      if (axis < from_.rank() - 1) {
        int64_t& i = index_[static_cast<size_t>(axis)];
        place_ += stride;
        if (++i < from_.dim(axis)) return;
        place_ -= stride * i;
        i = 0;
      }
      stride *= to_.dim(axis);
    }
  }

 private:
  const Shape& from_;
  const Shape& to_;
  Extents index_;
  int64_t place_ = 0;
};

void copy_into_corner(const Tensor& from, const Shape& to, Tensor& batch, int64_t at) {
  if (from.shape() == to) return copy_range(from, 0, from.num_elements(), batch, at);
  const int64_t run = from.dim(from.rank() - 1);
  Runs runs(from.shape(), to);
  for (int64_t i = 0; i < from.num_elements(); i += run, runs.next()) {
    copy_range(from, i, run, batch, at + runs.place());
  }
}

}  // namespace

QueueElement element_of(std::span<const Tensor> batches, int64_t row) {
  QueueElement element;
  element.values.reserve(batches.size());
  for (const Tensor& batch : batches) {
    Tensor& value = element.values.emplace_back(batch.dtype(), batch.shape().removed(0));
    const int64_t size = value.num_elements();
    copy_range(batch, row * size, size, value, 0);
  }
  return element;
}

Tensor batch_of(std::span<const QueueElement> elements, size_t component, DType dtype,
                const PartialShape& shape) {
  const bool fill = !shape.fully_known();
  const Shape row = fill ? largest(elements, component, shape) : shape.shape();
  const Shape all = row.inserted(0, static_cast<int64_t>(elements.size()));
  Tensor batch = fill ? Tensor::zeros(dtype, all) : Tensor(dtype, all);
  for (size_t i = 0; i < elements.size(); ++i) {
    copy_into_corner(elements[i].values[component], row, batch,
                     static_cast<int64_t>(i) * row.num_elements());
  }
  return batch;
}

}  // namespace treenail
