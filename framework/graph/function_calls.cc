// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/function_calls.h"

#include <algorithm>

namespace treenail {

bool calls_functions(const OpInstance& op) {
  return std::ranges::any_of(op.attrs(), [](const AttrValue& attr) {
    return attr.kind() == AttrKind::kFunction || attr.kind() == AttrKind::kFunctionList;
  });
}

std::vector<std::string> functions_called(const OpInstance& op) {
  std::vector<std::string> names;
  for (const AttrValue& attr : op.attrs()) {
    if (attr.kind() == AttrKind::kFunction) names.push_back(attr.get<FunctionAttr>().name);
    if (attr.kind() != AttrKind::kFunctionList) continue;
    for (const FunctionAttr& each : attr.get<std::vector<FunctionAttr>>())
      names.push_back(each.name);
  }
  return names;
}

}  // namespace treenail
