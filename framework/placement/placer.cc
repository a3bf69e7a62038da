// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placer.h"

#include <unordered_set>

#include "framework/base/error.h"
#include "framework/placement/device_name.h"

namespace treenail {

std::span<const std::string> local_devices() {
  static const std::string devices[] = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  return devices;
}

void place(const Graph& graph, bool allow_soft_placement) {
  if (allow_soft_placement) return;
  std::unordered_set<std::string> good;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* node = graph.node(id);
    if (node == nullptr || node->device().empty() || good.contains(node->device())) continue;
    bool met = false;
    try {
      const DeviceName request = parse_device_name(node->device());
      for (const std::string& device : local_devices())
        met |= satisfies(parse_device_name(device), request);
    } catch (const Error& error) {
      throw error.with_prefix(error_prefix(node->type(), node->original_name()));
    }
    if (!met) {
      throw invalid_argument(error_prefix(node->type(), node->original_name()),
                             "cannot be placed on \"", node->device(), "\": this process has ",
                             local_devices()[0], "; allow_soft_placement runs it there");
    }
    good.insert(node->device());
  }
}

}  // namespace treenail
