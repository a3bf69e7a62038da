// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/barrier.cc.
#include "framework/runtime/state/barrier.h"

#include <algorithm>
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/resource_handle.h"
#include "kernels/host/state/async_lambda.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

Barrier& barrier_from(const Tensor& handle) {
  return resource_from<Barrier>(handle, "a barrier's handle");
}

KernelPtr prepare_handle(const PrepareContext& p) {
  const OpInstance& op = p.op();
  BarrierOptions options{op.get<std::vector<DType>>("component_types"),
                         op.get<std::vector<PartialShape>>("shapes")};
  options.shapes.resize(options.types.size());
  const std::string& shared = op.get_string("shared_name");
  const std::string name = shared.empty() ? std::string(p.node_name()) : shared;
  const auto barrier = named_barrier(p.resources(), op.get_string("container"), name, options);
  return make_kernel(
      [barrier](RunContext& c) { c.output(0).data<ResourceElement>()->object = barrier; }, 10);
}

KernelPtr prepare_insert(const PrepareContext& p) {
  return make_kernel(
      [component = p.op().get_int("component_index")](RunContext& c) {
        barrier_from(c.input(0)).insert(component, c.input(1), c.input(2));
      },
      500 + 300 * static_cast<double>(p.input_shape(1).num_elements()));
}

KernelPtr prepare_take(const PrepareContext& p) {
  const OpInstance& op = p.op();
  return make_async_kernel(
      [types = op.get<std::vector<DType>>("component_types"),
       small = op.get_bool("allow_small_batch"),
       wait = op.get_bool("wait_for_incomplete")](RunContext& c, const Done& done) {
        Barrier& barrier = barrier_from(c.input(0));
        barrier.check_types(types);
        barrier.take(c, done, {*c.input(1).data<int32_t>(), small, wait});
      });
}

KernelPtr prepare_close(const PrepareContext& p) {
  return make_kernel([cancel = p.op().get_bool("cancel_pending_enqueues")](
                         RunContext& c) { barrier_from(c.input(0)).close(cancel); },
                     500);
}

template <int64_t (Barrier::*size)() const>
KernelPtr prepare_size(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        *c.output(0).data<int32_t>() = static_cast<int32_t>(std::min<int64_t>(
            (barrier_from(c.input(0)).*size)(), std::numeric_limits<int32_t>::max()));
      },
      50);
}

}  // namespace

void register_barrier_kernels(KernelRegistry& r) {
  r.add("Barrier", {}, prepare_handle);
  r.add("BarrierInsertMany", {}, prepare_insert);
  r.add("BarrierTakeMany", {}, prepare_take);
  r.add("BarrierClose", {}, prepare_close);
  r.add("BarrierReadySize", {}, prepare_size<&Barrier::ready_size>);
  r.add("BarrierIncompleteSize", {}, prepare_size<&Barrier::incomplete_size>);
}

}  // namespace treenail::host
