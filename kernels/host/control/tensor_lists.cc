// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/control/tensor_lists.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/shape_context.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {

PartialShape told_shape(const Tensor& value) {
  if (value.rank() == 0) {
    if (const int64_t extent = scalar_int64(value); extent != -1) {
      throw invalid_argument(
          "The only valid scalar shape tensor is the fully unknown shape specified as -1, not ",
          extent);
    }
    return PartialShape();
  }
  int64_t storage[kMaxRank];
  return PartialShape(as_int64(value, storage));
}

Shape unset_shape(const TensorList& list, const PartialShape& told) {
  PartialShape shape =
      ShapeContext::merge(list.element_shape, told, "the elements of the list and element_shape");
  for (int64_t i = list.first_set(); i < list.end_set() && !shape.fully_known(); ++i) {
    const Tensor& element = list.at(i);
    if (element.defined())
      shape = ShapeContext::merge(shape, element.shape(), "elements of the list");
  }
  if (shape.fully_known()) return shape.shape();
  throw invalid_argument(
      "Trying to read an uninitialized tensor but element_shape is not fully defined: ", shape,
      " and no list element is set.");
}

Tensor element(const TensorList& list, int64_t i, const PartialShape& told) {
  const Tensor& found = list.at(i);
  if (!found.defined()) return Tensor::zeros(list.element_dtype, unset_shape(list, told));
  if (!told.compatible(found.shape())) {
    throw invalid_argument("element ", i, " of the list has shape ", found.shape(),
                           ", element_shape is ", told);
  }
  return found;
}

Tensor stacked(RunContext& c, DType dtype, const Shape& row, int64_t count, Rows rows) {
  Tensor out(dtype, row.inserted(0, count));
  const int64_t elements = row.num_elements();
  const int64_t bytes = elements * static_cast<int64_t>(dtype_size(dtype));
  const int64_t grain = std::max<int64_t>(1, kMoveBytes / std::max<int64_t>(bytes, 1));
  c.parallel_for(count, grain, 20 + 0.1 * static_cast<double>(bytes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const Tensor& from = rows(i);
                     if (from.defined()) {
                       copy_range(from, 0, elements, out, i * elements);
                     } else if (is_plain(dtype) && bytes != 0) {  // other elements are null
                       std::memset(static_cast<std::byte*>(out.raw()) + i * bytes, 0,
                                   static_cast<size_t>(bytes));
                     }
                   }
                 });
  return out;
}

}  // namespace treenail::host
