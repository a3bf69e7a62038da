// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/plan/schedule.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "framework/runtime/plan/plan.h"

namespace treenail {
namespace {

// A kernel shorter than this stays on one thread when it runs alone (a sleeping helper starts after
// 30-45 us).
constexpr double kSplitNs = 100'000;
constexpr double kSplitEfficiency = 0.9;
// Handing a node to another thread.
constexpr double kHandOverNs = 2'000;
// The side-by-side run must promise this much: estimates are rough, and split kernels share the
// caches better.
constexpr double kNeededGain = 0.8;

double cost(const PlanNode& node) { return node.kernel ? node.kernel->cost_ns : 0; }

double in_order_ns(std::span<const PlanNode> nodes, int threads) {
  double sum = 0;
  for (const PlanNode& node : nodes) {
    const double ns = cost(node);
    sum += ns < kSplitNs ? ns : ns / (threads * kSplitEfficiency);
  }
  return sum;
}

// List scheduling in canonical order: each node goes to the thread that is free first, once all it
// waits for is done.
double side_by_side_ns(std::span<const PlanNode> nodes, int threads) {
  std::vector<double> ready(nodes.size(), 0);
  std::priority_queue<double, std::vector<double>, std::greater<double>> free_at;
  for (int i = 0; i < threads; ++i) free_at.push(0);
  double end = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const double ns = cost(nodes[n]);
    double begin = std::max(ready[n], free_at.top());
    free_at.pop();
    const double done = begin + ns + (ns > 0 ? kHandOverNs : 0);
    free_at.push(done);
    for (const int32_t successor : nodes[n].successors) {
      ready[static_cast<size_t>(successor)] = std::max(ready[static_cast<size_t>(successor)], done);
    }
    end = std::max(end, done);
  }
  return end;
}

}  // namespace

bool faster_side_by_side(std::span<const PlanNode> nodes, int threads) {
  if (threads < 2 || nodes.size() < 2) return false;
  const double in_order = in_order_ns(nodes, threads);
  if (in_order < kSplitNs) return false;
  return side_by_side_ns(nodes, threads) < kNeededGain * in_order;
}

}  // namespace treenail
