// SPDX-License-Identifier: Apache-2.0
// What the C ABI's opaque pointers point to. tn_tensor, tn_call and tn_op are other names of
// Tensor, OpInstance and OpDef, so that a kernel's tensors are handed out as they are. Graphs and
// operations: graph_handles.h; errors at the border: guard.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/capi/guard.h"
#include "framework/op/op_def.h"
#include "framework/tensor/tensor.h"

struct tn_attrs {
  treenail::NamedAttrs values;
  tn_status mistake;  // the first one made while setting
};

namespace treenail::capi {

inline const Tensor& tensor_of(const tn_tensor* tensor, const char* what = "tensor") {
  return reinterpret_cast<const Tensor&>(required(tensor, what));
}
inline Tensor& tensor_of(tn_tensor* tensor, const char* what = "tensor") {
  return reinterpret_cast<Tensor&>(required(tensor, what));
}
inline const tn_tensor* handle(const Tensor& tensor) {
  return reinterpret_cast<const tn_tensor*>(&tensor);
}
inline tn_tensor* new_handle(Tensor tensor) {
  return reinterpret_cast<tn_tensor*>(new Tensor(std::move(tensor)));
}

inline const OpInstance& call_of(const tn_call* call) {
  return reinterpret_cast<const OpInstance&>(required(call, "call"));
}
inline const tn_call* handle(const OpInstance& op) { return reinterpret_cast<const tn_call*>(&op); }

inline const OpDef& def_of(const tn_op* op) {
  return reinterpret_cast<const OpDef&>(required(op, "op"));
}
inline const tn_op* handle(const OpDef& def) { return reinterpret_cast<const tn_op*>(&def); }

// Numbers and arrays of the caller as our types. Errors: InvalidArgument.
DType dtype_from(tn_dtype number);
Shape shape_from(const int64_t* dims, int32_t rank);
PartialShape partial_shape_from(const int64_t* dims, int32_t rank);
// Writes up to `capacity` extents; the rank or -1.
int32_t write_shape(const PartialShape& shape, int64_t* dims, int32_t capacity);
std::vector<Tensor> tensors_of(const tn_tensor* const* tensors, size_t count, const char* what);
// Hands out `results` as new handles: all, or none when memory runs out.
void hand_out(std::vector<Tensor> results, tn_tensor** out);

// The attributes given (null: none). Errors: the mistake made while they were set.
const NamedAttrs& attrs_of(const tn_attrs* attrs);
std::vector<int> list_sizes_of(const int32_t* sizes, size_t count);

}  // namespace treenail::capi
