// SPDX-License-Identifier: Apache-2.0
#include "framework/op/queue_components.h"

#include "framework/base/error.h"

namespace treenail {

std::vector<HandleInfo> queue_components(const OpInstance& op) {
  const auto& types = op.get<std::vector<DType>>("component_types");
  const auto& shapes = op.get<std::vector<PartialShape>>("shapes");
  if (!shapes.empty() && shapes.size() != types.size()) {
    throw invalid_argument("shapes has ", shapes.size(), " entries for ", types.size(),
                           " component_types: as many are needed, or none");
  }
  std::vector<HandleInfo> components;
  if (op.name() == "PriorityQueueV2") components.push_back({DType::kInt64, Shape()});
  for (size_t i = 0; i < types.size(); ++i) {
    components.push_back({types[i], shapes.empty() ? PartialShape() : shapes[i]});
  }
  return components;
}

}  // namespace treenail
