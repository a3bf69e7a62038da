// SPDX-License-Identifier: Apache-2.0
// tn_call_*: reading an op instance, for clients (a node's attributes) and for plugins (their rules
// and kernels).
#include <string>
#include <utility>
#include <vector>

#include "framework/capi/handles.h"

using treenail::AttrKind;
using treenail::AttrValue;
using treenail::DType;
using treenail::FunctionAttr;
using treenail::OpInstance;
using treenail::out_of_range;
using treenail::PartialShape;
using treenail::Tensor;
using treenail::capi::call_of;
using treenail::capi::guarded;
using treenail::capi::text;

namespace {

constexpr bool same(tn_attr_kind number, AttrKind kind) {
  return number == static_cast<tn_attr_kind>(kind);
}
static_assert(same(TN_ATTR_INT, AttrKind::kInt) && same(TN_ATTR_FLOAT, AttrKind::kFloat) &&
              same(TN_ATTR_BOOL, AttrKind::kBool) && same(TN_ATTR_STRING, AttrKind::kString) &&
              same(TN_ATTR_TYPE, AttrKind::kType) && same(TN_ATTR_SHAPE, AttrKind::kShape) &&
              same(TN_ATTR_TENSOR, AttrKind::kTensor) &&
              same(TN_ATTR_FUNCTION, AttrKind::kFunction) && TN_ATTR_LIST == treenail::kListBit);

const AttrValue& attribute(const tn_call* call, const char* name) {
  const OpInstance& op = call_of(call);
  const int position = op.def().attr_index(text(name, "name"));
  if (position < 0)
    throw treenail::not_found("op \"", op.name(), "\" has no attribute \"", name, "\"");
  return op.attr(position);
}

size_t size_of(const AttrValue& value) {
  switch (value.kind()) {
    case AttrKind::kIntList:
      return value.get<std::vector<int64_t>>().size();
    case AttrKind::kFloatList:
      return value.get<std::vector<double>>().size();
    case AttrKind::kBoolList:
      return value.get<std::vector<bool>>().size();
    case AttrKind::kStringList:
      return value.get<std::vector<std::string>>().size();
    case AttrKind::kTypeList:
      return value.get<std::vector<DType>>().size();
    case AttrKind::kShapeList:
      return value.get<std::vector<PartialShape>>().size();
    case AttrKind::kTensorList:
      return value.get<std::vector<Tensor>>().size();
    case AttrKind::kFunctionList:
      return value.get<std::vector<FunctionAttr>>().size();
    default:
      return 1;
  }
}

// The value, or the element of a list. `bool` comes by value: a list of bools has no references.
template <class T>
decltype(auto) element(const tn_call* call, const char* name, size_t index) {
  using Result = std::conditional_t<std::is_same_v<T, bool>, bool, const T&>;
  const AttrValue& value = attribute(call, name);
  const bool list = is_list(value.kind());
  const size_t size = list ? value.get<std::vector<T>>().size() : 1;
  if (index >= size) {
    throw out_of_range("element ", index, " of attribute \"", name, "\" is not in [0, ", size, ")");
  }
  if (list) return static_cast<Result>(value.get<std::vector<T>>()[index]);
  return static_cast<Result>(value.get<T>());
}

tn_dtype type_at(std::span<const DType> types, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= types.size()) return 0;
  return static_cast<tn_dtype>(types[static_cast<size_t>(index)]);
}

void give_range(std::pair<int, int> range, int32_t* begin, int32_t* end) {
  treenail::capi::required(begin, "begin") = range.first;
  treenail::capi::required(end, "end") = range.second;
}

}  // namespace

const char* tn_call_op(const tn_call* call) noexcept {
  return call == nullptr ? nullptr : call_of(call).name().c_str();
}

int32_t tn_call_num_inputs(const tn_call* call) noexcept {
  return call == nullptr ? 0 : call_of(call).num_inputs();
}

int32_t tn_call_num_outputs(const tn_call* call) noexcept {
  return call == nullptr ? 0 : call_of(call).num_outputs();
}

tn_dtype tn_call_input_dtype(const tn_call* call, int32_t input) noexcept {
  return call == nullptr ? 0 : type_at(call_of(call).input_types(), input);
}

tn_dtype tn_call_output_dtype(const tn_call* call, int32_t output) noexcept {
  return call == nullptr ? 0 : type_at(call_of(call).output_types(), output);
}

tn_attr_kind tn_call_attr_kind(const tn_call* call, const char* name, tn_status* status) noexcept {
  return guarded(status, [&] { return static_cast<tn_attr_kind>(attribute(call, name).kind()); });
}

size_t tn_call_attr_size(const tn_call* call, const char* name, tn_status* status) noexcept {
  return guarded(status, [&] { return size_of(attribute(call, name)); });
}

int64_t tn_call_attr_int(const tn_call* call, const char* name, size_t index,
                         tn_status* status) noexcept {
  return guarded(status, [&]() -> int64_t { return element<int64_t>(call, name, index); });
}

double tn_call_attr_float(const tn_call* call, const char* name, size_t index,
                          tn_status* status) noexcept {
  return guarded(status, [&]() -> double { return element<double>(call, name, index); });
}

int32_t tn_call_attr_bool(const tn_call* call, const char* name, size_t index,
                          tn_status* status) noexcept {
  return guarded(status, [&]() -> int32_t { return element<bool>(call, name, index) ? 1 : 0; });
}

const char* tn_call_attr_string(const tn_call* call, const char* name, size_t index, size_t* length,
                                tn_status* status) noexcept {
  if (length != nullptr) *length = 0;
  return guarded(status, [&] {
    const std::string& value = element<std::string>(call, name, index);
    if (length != nullptr) *length = value.size();
    return value.c_str();
  });
}

tn_dtype tn_call_attr_type(const tn_call* call, const char* name, size_t index,
                           tn_status* status) noexcept {
  return guarded(status, [&] { return static_cast<tn_dtype>(element<DType>(call, name, index)); });
}

int32_t tn_call_attr_shape(const tn_call* call, const char* name, size_t index,
                           const int64_t** dims, tn_status* status) noexcept {
  if (dims != nullptr) *dims = nullptr;
  int32_t rank = -1;
  guarded(status, [&] {
    const PartialShape& shape = element<PartialShape>(call, name, index);
    if (dims != nullptr) *dims = shape.dims().data();
    rank = shape.rank();
  });
  return rank;
}

const tn_tensor* tn_call_attr_tensor(const tn_call* call, const char* name, size_t index,
                                     tn_status* status) noexcept {
  return guarded(status,
                 [&] { return treenail::capi::handle(element<Tensor>(call, name, index)); });
}

const char* tn_call_attr_function(const tn_call* call, const char* name, size_t index,
                                  tn_status* status) noexcept {
  return guarded(status, [&] { return element<FunctionAttr>(call, name, index).name.c_str(); });
}

void tn_call_input_range(const tn_call* call, const char* name, int32_t* begin, int32_t* end,
                         tn_status* status) noexcept {
  guarded(status, [&] {
    const OpInstance& op = call_of(call);
    const int arg = op.def().input_index(text(name, "name"));
    if (arg < 0) throw treenail::not_found("op \"", op.name(), "\" has no input \"", name, "\"");
    give_range(op.input_range(arg), begin, end);
  });
}

void tn_call_output_range(const tn_call* call, const char* name, int32_t* begin, int32_t* end,
                          tn_status* status) noexcept {
  guarded(status, [&] {
    const OpInstance& op = call_of(call);
    const int arg = op.def().output_index(text(name, "name"));
    if (arg < 0) throw treenail::not_found("op \"", op.name(), "\" has no output \"", name, "\"");
    give_range(op.output_range(arg), begin, end);
  });
}
