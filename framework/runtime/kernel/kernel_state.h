// SPDX-License-Identifier: Apache-2.0
// What a stateful op keeps from run to run, beside its random counter: a resource of the session,
// under the original node's name, so that another plan of the node finds it.
#pragma once

#include <string_view>

#include "framework/base/function_ref.h"
#include "framework/base/intrusive_ptr.h"
#include "framework/tensor/resource.h"

namespace treenail {

class ResourceManager;

// The state of the op whose original node has that name, made by `make` at first use: under the
// manager's lock, so it must not call back.
IntrusivePtr<Resource> node_state(ResourceManager& resources, std::string_view node_name,
                                  FunctionRef<IntrusivePtr<Resource>()> make);

}  // namespace treenail
