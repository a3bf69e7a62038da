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

// Begun early, an iteration has a frame of its own, and is told of each argument.
constexpr double kIterationNs = 5'000;

// Iterations on as many threads as one likes: all that holds one up is what it needs of those
// before it.
class OverlappingIterations {
 public:
  OverlappingIterations(const Plan& plan, const IterationLinks& links, int most)
      : plan_(plan),
        links_(links),
        most_(static_cast<size_t>(most)),
        there_(plan.arg_successors.size(), 0) {}

  // How much later each ends than the one before, in the long run.
  double period_ns() {
    const size_t half = 4 * most_;
    while (ends_.size() < 2 * half) run_next();
    return (ends_[2 * half - 1] - ends_[half - 1]) / static_cast<double>(half);
  }

 private:
  void run_next() {
    const size_t number = ends_.size();
    double begin = number < most_ ? 0 : ends_[number - most_];
    for (size_t i = 0; i < links_.decide.size(); ++i)
      if (links_.decide[i]) begin = std::max(begin, there_[i]);
    std::vector<double> done(plan_.nodes.size(), begin + kIterationNs);
    const auto wait = [&](int32_t n, double until) {
      double& ready = done[static_cast<size_t>(n)];
      ready = std::max(ready, until);
    };
    for (size_t i = 0; i < there_.size(); ++i)
      for (const int32_t n : plan_.arg_successors[i]) wait(n, there_[i]);
    double end = begin;
    for (size_t n = 0; n < done.size(); ++n) {
      done[n] += cost(plan_.nodes[n]);
      for (const int32_t next : plan_.nodes[n].successors) wait(next, done[n]);
      end = std::max(end, done[n]);
    }
    ends_.push_back(end);
    hand_on(done);
  }

  void hand_on(const std::vector<double>& done) {
    std::vector<double> next = there_;
    for (size_t i = 0; i < next.size(); ++i) {
      const int32_t fetch = fetch_of(i);
      if (fetch < 0) continue;
      for (const int32_t wait : plan_.fetch_waits[static_cast<size_t>(fetch)]) {
        const double at =
            wait < 0 ? there_[static_cast<size_t>(-1 - wait)] : done[static_cast<size_t>(wait)];
        next[i] = std::max(next[i], at);
      }
    }
    there_ = std::move(next);
  }

  // States stand behind the arguments and behind the fetches.
  int32_t fetch_of(size_t argument) const {
    const size_t values = links_.from.size();
    if (argument < values) return links_.from[argument];
    return static_cast<int32_t>(plan_.fetch_slots.size() + argument - values);
  }

  const Plan& plan_;
  const IterationLinks& links_;
  const size_t most_;
  std::vector<double> there_;  // by argument and state: when it is there for the next iteration
  std::vector<double> ends_;   // by iteration
};

}  // namespace

bool faster_side_by_side(std::span<const PlanNode> nodes, int threads) {
  if (threads < 2 || nodes.size() < 2) return false;
  const double in_order = in_order_ns(nodes, threads);
  if (in_order < kSplitNs) return false;
  return side_by_side_ns(nodes, threads) < kNeededGain * in_order;
}

bool faster_overlapping(const Plan& plan, const IterationLinks& links, int threads, int most) {
  return may_be_faster_overlapping(plan, threads) &&
         OverlappingIterations(plan, links, most).period_ns() <
             kNeededGain * in_order_ns(plan.nodes, threads);
}

bool may_be_faster_overlapping(const Plan& plan, int threads) {
  return threads > 1 &&
         plan.cost_ns / threads + kIterationNs < kNeededGain * in_order_ns(plan.nodes, threads);
}

}  // namespace treenail
