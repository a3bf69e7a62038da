// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/random_counter.h"

#include "framework/runtime/state/resource_manager.h"

namespace treenail {

IntrusivePtr<RandomCounter> random_counter_of(ResourceManager& resources,
                                              std::string_view node_name) {
  // A container that no VarHandleOp can name by accident: user containers never begin with a slash.
  auto make = [] { return IntrusivePtr<RandomCounter>(new SessionRandomCounter); };
  return resources.lookup_or_create<RandomCounter>("/random", node_name, make);
}

}  // namespace treenail
