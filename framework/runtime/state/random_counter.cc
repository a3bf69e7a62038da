// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/random_counter.h"

#include <string_view>

#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

// That no VarHandleOp can name by accident: user containers never begin with a slash.
constexpr std::string_view kContainer = "/random";

}  // namespace

void forget_random_counters(ResourceManager& resources, std::string_view path) {
  resources.remove_all(kContainer, path);
}

IntrusivePtr<RandomCounter> random_counter_of(ResourceManager& resources,
                                              std::string_view node_name) {
  auto make = [] { return IntrusivePtr<RandomCounter>(new SessionRandomCounter); };
  return resources.lookup_or_create<RandomCounter>(kContainer, node_name, make);
}

}  // namespace treenail
