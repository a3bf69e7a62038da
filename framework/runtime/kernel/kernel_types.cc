// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_types.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace treenail {
namespace {

std::vector<DType> plain_of(std::span<const DType> dtypes) {
  std::vector<DType> plain;
  std::ranges::copy_if(dtypes, std::back_inserter(plain), is_plain);
  return plain;
}

std::vector<DType> all_plain() {
  std::vector<DType> all;
  for (int n = 1; n < kNumDTypes; ++n) {
    if (dtype_is_valid(n)) all.push_back(static_cast<DType>(n));
  }
  return plain_of(all);
}

// The positions of attributes that give an input or output its dtype.
std::vector<int> dtype_attrs(const OpDef& def) {
  std::vector<int> attrs;
  for (const auto& args : {def.inputs, def.outputs}) {
    for (const ArgDef& arg : args) {
      const int attr = arg.type_attr >= 0 ? arg.type_attr : arg.type_list_attr;
      if (attr >= 0 && std::ranges::find(attrs, attr) == attrs.end()) attrs.push_back(attr);
    }
  }
  return attrs;
}

}  // namespace

std::optional<std::vector<TypeConstraint>> plain_constraints(
    const OpDef& def, std::vector<TypeConstraint> constraints) {
  for (const int position : dtype_attrs(def)) {
    const AttrDef& attr = def.attrs[static_cast<size_t>(position)];
    if (std::ranges::find(constraints, attr.name, &TypeConstraint::attr) == constraints.end())
      constraints.push_back(
          {attr.name, attr.allowed_types.empty() ? all_plain() : attr.allowed_types});
  }
  for (TypeConstraint& constraint : constraints) {
    constraint.dtypes = plain_of(constraint.dtypes);
    if (constraint.dtypes.empty()) return std::nullopt;
  }
  return constraints;
}

}  // namespace treenail
