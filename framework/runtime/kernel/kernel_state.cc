// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_state.h"

#include "framework/runtime/state/resource_manager.h"

namespace treenail {

IntrusivePtr<Resource> node_state(ResourceManager& resources, std::string_view node_name,
                                  FunctionRef<IntrusivePtr<Resource>()> make) {
  // A container that no user can name: theirs never begin with a slash.
  return resources.lookup_or_create<Resource>("/state", node_name, make);
}

}  // namespace treenail
