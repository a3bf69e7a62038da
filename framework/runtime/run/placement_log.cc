// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/placement_log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

namespace treenail {
namespace {

using Row = std::array<std::string, 4>;

Row row_of(const Node& node, const Topology& topology, const DeviceName& task) {
  const auto number = static_cast<size_t>(topology.places[static_cast<size_t>(node.id())]);
  const DeviceName device = merge_device_names(topology.devices[number]->name(), task);
  return {node.original_name(), node.type(), to_text(device), node.device()};
}

std::string text_of(const std::vector<Row>& rows) {
  std::array<size_t, 4> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] + 2 - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

void PlacementLog::write(const Topology& topology, const DeviceName& task) {
  std::vector<Row> rows{{"operation", "type", "device", "asked for"}};
  const std::unique_lock lock(mutex_);
  if (mutex_.abandoned()) begin_anew(written_);
  for (const Node* node : topology.order) {
    const bool own = node->type().starts_with('_');
    if (!own && written_.insert(node->original_name()).second)
      rows.push_back(row_of(*node, topology, task));
  }
  if (rows.size() > 1) std::fputs(text_of(rows).c_str(), stderr);
}

}  // namespace treenail
