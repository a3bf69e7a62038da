// SPDX-License-Identifier: Apache-2.0
// Ops that compute nothing and only order others.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {

void register_control_ops(OpRegistry& r) {
  r.op("NoOp", HostAccess::kNone)
      .any_device()
      .shape(no_outputs_shape)
      .not_differentiable()
      .doc(
          "Does nothing; control inputs make it wait for other operations, so it stands for all of "
          "them.");
  r.finish("control");
}

}  // namespace treenail
