// SPDX-License-Identifier: Apache-2.0
// What the fetches and targets of a run in parts wait for, as its plan has it: with the order of
// accesses to variables, and without what is known before the run.
#include <algorithm>
#include <span>

#include "framework/runtime/plan/plan.h"
#include "framework/runtime/run/run_limits.h"
#include "framework/runtime/run/session_impl.h"

namespace treenail {
namespace {

// Which of the plan's nodes come after some of them.
class After {
 public:
  explicit After(const Plan& plan) : plan_(plan), marked_(plan.nodes.size()) {}
  void add(std::span<const int32_t> nodes) {
    for (const int32_t n : nodes) visit(n);
    while (!stack_.empty()) {
      const int32_t n = stack_.back();
      stack_.pop_back();
      for (const int32_t next : plan_.nodes[static_cast<size_t>(n)].successors) visit(next);
    }
  }
  bool has(int32_t node) const { return marked_[static_cast<size_t>(node)]; }

 private:
  void visit(int32_t n) {
    if (marked_[static_cast<size_t>(n)]) return;
    marked_[static_cast<size_t>(n)] = true;
    stack_.push_back(n);
  }
  const Plan& plan_;
  std::vector<bool> marked_;
  std::vector<int32_t> stack_;
};

template <class Note>
void note_waiting(const Plan& plan, const After& after, int32_t feed, Note note) {
  size_t end = 0;
  for (const auto* waits : {&plan.fetch_waits, &plan.target_waits}) {
    for (const Numbers& each : *waits) {
      const bool waiting = std::ranges::any_of(
          each, [&](int32_t wait) { return wait < 0 ? ~wait == feed : after.has(wait); });
      if (waiting) note(end);
      ++end;
    }
  }
}

}  // namespace

std::vector<Session::PartNeeds> Session::part_needs(const std::shared_ptr<Signature>& signature,
                                                    const RunOptions& options) {
  RunLimits limits(options);
  const std::shared_ptr<const Plan> plan =
      signature->plan_in_parts(impl_->planning(*graph_), limits);
  limits.end_planning();
  std::vector<PartNeeds> needs(plan->fetch_waits.size() + plan->target_waits.size());
  for (size_t feed = 0; feed < plan->arg_successors.size(); ++feed) {
    After after(*plan);
    after.add(plan->arg_successors[feed]);
    note_waiting(*plan, after, static_cast<int32_t>(feed),
                 [&](size_t end) { needs[end].feeds.push_back(feed); });
  }
  constexpr int32_t kNoFeed = -1;
  for (size_t n = 0; n < plan->nodes.size(); ++n) {
    const Node* const node = plan->nodes[n].node;
    if (node == nullptr || node->type() != "_Recv") continue;
    const int32_t number[] = {static_cast<int32_t>(n)};
    After after(*plan);
    after.add(number);
    note_waiting(*plan, after, kNoFeed,
                 [&](size_t end) { needs[end].received.push_back(node->op().get_string("key")); });
  }
  return needs;
}

}  // namespace treenail
