// SPDX-License-Identifier: Apache-2.0
// tn_op_*: what ops there are and what each declares.
#include "framework/op/op_registry.h"

#include <algorithm>
#include <vector>

#include "framework/capi/handles.h"
#include "framework/capi/load_plugin.h"

using treenail::ArgDef;
using treenail::AttrDef;
using treenail::OpDef;
using treenail::OpRegistry;
using treenail::capi::def_of;
using treenail::capi::guarded;
using treenail::capi::handle;

namespace {

template <class T>
const T* at(const std::vector<T>& list, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= list.size()) return nullptr;
  return &list[static_cast<size_t>(index)];
}

const char* arg_name(const std::vector<ArgDef>& list, int32_t index) {
  const ArgDef* arg = at(list, index);
  return arg == nullptr ? nullptr : arg->name.c_str();
}

tn_dtype arg_dtype(const std::vector<ArgDef>& list, int32_t index) {
  const ArgDef* arg = at(list, index);
  return arg == nullptr ? 0 : static_cast<tn_dtype>(arg->dtype);
}

}  // namespace

size_t tn_op_list(const tn_op** ops, size_t capacity, tn_status* status) noexcept {
  return guarded(status, [&] {
    treenail::load_environment_plugins();
    const std::vector<const OpDef*> all = OpRegistry::instance().all();
    if (ops != nullptr) {
      for (size_t i = 0; i < std::min(capacity, all.size()); ++i) ops[i] = handle(*all[i]);
    }
    return all.size();
  });
}

const tn_op* tn_op_find(const char* name, tn_status* status) noexcept {
  return guarded(status, [&] {
    treenail::load_environment_plugins();
    return handle(OpRegistry::instance().get(treenail::capi::text(name, "name")));
  });
}

const char* tn_op_name(const tn_op* op) noexcept {
  return op == nullptr ? nullptr : def_of(op).name.c_str();
}

const char* tn_op_doc(const tn_op* op) noexcept {
  return op == nullptr ? nullptr : def_of(op).doc.c_str();
}

int32_t tn_op_version(const tn_op* op) noexcept { return op == nullptr ? 0 : def_of(op).version; }

uint32_t tn_op_flags(const tn_op* op) noexcept {
  if (op == nullptr) return 0;
  const OpDef& def = def_of(op);
  const auto flag = [](bool set, uint32_t bit) { return set ? bit : 0U; };
  return flag(def.stateful, TN_OP_STATEFUL) | flag(def.commutative, TN_OP_COMMUTATIVE) |
         flag(def.data_dependent_shape, TN_OP_DATA_DEPENDENT_SHAPE) |
         flag(def.non_differentiable, TN_OP_NOT_DIFFERENTIABLE) |
         flag(def.allocates_outputs, TN_OP_ALLOCATES_OUTPUTS) |
         flag(def.asynchronous, TN_OP_ASYNCHRONOUS);
}

int32_t tn_op_num_inputs(const tn_op* op) noexcept {
  return op == nullptr ? 0 : static_cast<int32_t>(def_of(op).inputs.size());
}

int32_t tn_op_num_outputs(const tn_op* op) noexcept {
  return op == nullptr ? 0 : static_cast<int32_t>(def_of(op).outputs.size());
}

int32_t tn_op_num_attrs(const tn_op* op) noexcept {
  return op == nullptr ? 0 : static_cast<int32_t>(def_of(op).attrs.size());
}

const char* tn_op_input_name(const tn_op* op, int32_t input) noexcept {
  return op == nullptr ? nullptr : arg_name(def_of(op).inputs, input);
}

const char* tn_op_output_name(const tn_op* op, int32_t output) noexcept {
  return op == nullptr ? nullptr : arg_name(def_of(op).outputs, output);
}

tn_dtype tn_op_input_dtype(const tn_op* op, int32_t input) noexcept {
  return op == nullptr ? 0 : arg_dtype(def_of(op).inputs, input);
}

tn_dtype tn_op_output_dtype(const tn_op* op, int32_t output) noexcept {
  return op == nullptr ? 0 : arg_dtype(def_of(op).outputs, output);
}

const char* tn_op_attr_name(const tn_op* op, int32_t attr) noexcept {
  const AttrDef* def = op == nullptr ? nullptr : at(def_of(op).attrs, attr);
  return def == nullptr ? nullptr : def->name.c_str();
}

tn_attr_kind tn_op_attr_kind(const tn_op* op, int32_t attr) noexcept {
  const AttrDef* def = op == nullptr ? nullptr : at(def_of(op).attrs, attr);
  return def == nullptr ? 0 : static_cast<tn_attr_kind>(def->kind);
}

int32_t tn_op_attr_has_default(const tn_op* op, int32_t attr) noexcept {
  const AttrDef* def = op == nullptr ? nullptr : at(def_of(op).attrs, attr);
  return def != nullptr && def->has_default ? 1 : 0;
}
