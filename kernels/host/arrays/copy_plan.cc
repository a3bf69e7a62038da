// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/arrays/copy_plan.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

struct Added {
  std::mutex mutex;
  std::vector<CopyOp> ops;

  static Added& instance() {
    static auto* const added = new Added;
    return *added;
  }
};

void clear(RunContext& c, Tensor& output) {
  dispatch_element(output.dtype(), [&]<class T>() {
    T* const out = elements<T>(output);
    c.parallel_for(
        output.num_elements(), kMoveGrain<T>, kMoveCost<T>,
        [&](int64_t begin, int64_t end) { fill_elements(out + begin, T(), end - begin); });
  });
}

double cost_of(const CopyPlan& plan, const PrepareContext& p) {
  double cost = 0;
  for (const CopyPlan::Part& part : plan.parts) cost += part.copy.cost_ns();
  if (!plan.zeros) return cost;
  constexpr double kClearNs = 0.1;  // a byte
  for (int i = 0; i < p.op().num_outputs(); ++i) {
    cost += kClearNs * static_cast<double>(p.output_shape(i).num_elements()) *
            static_cast<double>(dtype_size(p.output_type(i)));
  }
  return cost;
}

std::unique_ptr<Kernel> prepare_copies(const PrepareContext& p) {
  CopyPlan plan = plan_copies(p);
  const double cost = cost_of(plan, p);
  return make_kernel(
      [plan = std::move(plan), outputs = p.op().num_outputs()](RunContext& c) {
        for (int i = 0; plan.zeros && i < outputs; ++i) clear(c, c.output(i));
        for (const CopyPlan::Part& part : plan.parts)
          part.copy.run(c, c.input(part.from).raw(), c.output(part.to).raw());
      },
      cost);
}

}  // namespace

void add_copy_ops(KernelRegistry& registry, std::span<const CopyOp> ops) {
  Added& added = Added::instance();
  const std::lock_guard lock(added.mutex);
  for (const CopyOp& op : ops) {
    registry.add(op.name, {}, prepare_copies);
    const auto same = [&](const CopyOp& other) { return other.plan == op.plan; };
    if (std::ranges::none_of(added.ops, same)) added.ops.push_back(op);
  }
}

std::vector<CopyOp> copy_ops() {
  Added& added = Added::instance();
  const std::lock_guard lock(added.mutex);
  return added.ops;
}

CopyPlan plan_copies(const PrepareContext& p) {
  const std::string_view name = p.op().name();
  for (const CopyOp& op : copy_ops()) {
    if (op.name == name) return op.plan(p);
  }
  throw internal_error(name, " is no op that only moves elements");
}

}  // namespace treenail::host
