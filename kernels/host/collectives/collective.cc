// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/collective.cc: they hand their values to the process's group
// (framework/distributed/collectives) and are ended by it. A run that is cancelled ends at once;
// the group keeps this rank's part, so that the others get their results.
#include "framework/distributed/collectives/collective.h"

#include <memory>
#include <string>
#include <utility>

#include "framework/distributed/collectives/communicator.h"
#include "framework/distributed/collectives/parts.h"
#include "framework/distributed/collectives/rank_order.h"
#include "framework/runtime/kernel/kernel_end.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/state/async_lambda.h"

namespace treenail::host {
namespace {

class Call final : public Collective {
 public:
  Call(const RunContext& context, const Done& done) : end(context, done) {}

  void ended(std::exception_ptr error) noexcept override {
    if (error != nullptr) return end.fail(std::move(error));
    end.end(std::move(outputs));
  }

  CancellableEnd end;
};

struct Wish {
  CollectiveKind kind = CollectiveKind::kBarrier;
  Reduction reduction = Reduction::kSum;
  DType dtype = DType::kInvalid;
  int32_t root = 0;
  int inputs = 0;
  std::string key;
};

void start(const Wish& wish, const RunContext& context, const Done& done) {
  const std::shared_ptr<Communicator> group = current_communicator();
  const auto call = make_counted<Call>(context, done);
  call->kind = wish.kind;
  call->reduction = wish.reduction;
  call->dtype = wish.dtype;
  call->root = wish.root;
  call->key = wish.key;
  for (int i = 0; i < wish.inputs; ++i) call->inputs.push_back(context.input(i));
  call->end.watch(*call);
  try {
    group->submit(call);
  } catch (...) {
    if (call->end.forget()) throw;
  }
}

Wish wish_of(const PrepareContext& p, CollectiveKind kind) {
  Wish wish;
  wish.kind = kind;
  wish.inputs = p.num_inputs();
  if (wish.inputs > 0) wish.dtype = p.input_type(0);
  const std::string& key = p.op().get_string("key");
  wish.key = key.empty() ? std::string(p.node_name()) : key;
  return wish;
}

std::unique_ptr<AsyncKernel> make_call(const Wish& wish) {
  return make_async_kernel([wish](const RunContext& c, const Done& done) { start(wish, c, done); });
}

template <CollectiveKind kind>
std::unique_ptr<Kernel> prepare_moving(const PrepareContext& p) {
  return make_call(wish_of(p, kind));
}

std::unique_ptr<AsyncKernel> make_reducing(const PrepareContext& p, CollectiveKind kind) {
  Wish wish = wish_of(p, kind);
  wish.reduction = reduction_from_name(p.op().get_string("reduction"));
  return make_call(wish);
}

std::unique_ptr<Kernel> prepare_reduce_scatter(const PrepareContext& p) {
  return make_reducing(p, CollectiveKind::kReduceScatter);
}

Tensor memory_of_group(DType dtype, const Shape& shape) {
  const std::shared_ptr<Communicator> group = find_communicator();
  return group == nullptr ? Tensor(dtype, shape) : group->allocate(dtype, shape);
}

std::unique_ptr<Kernel> prepare_all_reduce(const PrepareContext& p) {
  std::unique_ptr<AsyncKernel> kernel = make_reducing(p, CollectiveKind::kAllReduce);
  if (p.num_inputs() > 1) return kernel;  // they are put together
  const auto elements = static_cast<size_t>(p.input_shape(0).num_elements());
  if (elements * dtype_size(p.input_type(0)) > kSplitBytes) kernel->input_memory = memory_of_group;
  return kernel;
}

std::unique_ptr<Kernel> prepare_broadcast(const PrepareContext& p) {
  Wish wish = wish_of(p, CollectiveKind::kBroadcast);
  wish.root = static_cast<int32_t>(p.op().get_int("root"));
  return make_call(wish);
}

std::unique_ptr<Kernel> prepare_rank(const PrepareContext&) {
  return make_kernel([](RunContext& c) {
    const std::shared_ptr<Communicator> group = current_communicator();
    *c.output(0).data<int32_t>() = group->rank();
    *c.output(1).data<int32_t>() = group->size();
  });
}

}  // namespace

void register_collective_kernels(KernelRegistry& r) {
  r.add("CollectiveAllReduce", {}, prepare_all_reduce);
  r.add("CollectiveReduceScatter", {}, prepare_reduce_scatter);
  r.add("CollectiveBroadcast", {}, prepare_broadcast);
  r.add("CollectiveAllGather", {}, prepare_moving<CollectiveKind::kAllGather>);
  r.add("CollectiveAllToAll", {}, prepare_moving<CollectiveKind::kAllToAll>);
  r.add("CollectiveBarrier", {}, prepare_moving<CollectiveKind::kBarrier>);
  r.add("CollectiveRank", {}, prepare_rank);
}

}  // namespace treenail::host
