// SPDX-License-Identifier: Apache-2.0
// See building_context.h. A graph may end on another thread than those that built it; contexts left
// behind are empty, unless a thread left a `with` open, and go when many have gathered.
#include "python/binding/building_context.h"

#include <atomic>
#include <memory>
#include <unordered_map>

namespace treenail::python {
namespace {

constexpr size_t kMany = 64;

struct Contexts {
  uint64_t last_id = 0;
  BuildingContext* last = nullptr;
  std::unordered_map<uint64_t, std::unique_ptr<BuildingContext>> by_graph;
};
thread_local Contexts contexts;

}  // namespace

uint64_t new_context_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

BuildingContext& building_context(uint64_t graph_id) {
  Contexts& c = contexts;
  if (c.last_id == graph_id) return *c.last;
  const auto found = c.by_graph.find(graph_id);
  if (found == c.by_graph.end()) {
    if (c.by_graph.size() >= kMany)
      std::erase_if(c.by_graph, [](const auto& entry) { return entry.second->empty(); });
    c.last = c.by_graph.emplace(graph_id, std::make_unique<BuildingContext>()).first->second.get();
  } else {
    c.last = found->second.get();
  }
  c.last_id = graph_id;
  return *c.last;
}

void drop_building_context(uint64_t graph_id) {
  Contexts& c = contexts;
  const auto found = c.by_graph.find(graph_id);
  if (found != c.by_graph.end()) {
    found->second->ask_for_device("");
    c.by_graph.erase(found);
  }
  if (c.last_id == graph_id) c.last_id = 0;
}

}  // namespace treenail::python
