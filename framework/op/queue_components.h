// SPDX-License-Identifier: Apache-2.0
// What the attributes of an op that makes a queue say of its elements: read alike by shape rules
// and by who makes the queue.
#pragma once

#include <vector>

#include "framework/op/shape_context.h"

namespace treenail {

// dtype and shape of each component, from component_types and shapes; of unknown rank where there
// are no shapes. A PriorityQueueV2 has the priority, a scalar int64, in front. Errors:
// InvalidArgument (as many shapes as components, or none).
std::vector<HandleInfo> queue_components(const OpInstance& op);

}  // namespace treenail
