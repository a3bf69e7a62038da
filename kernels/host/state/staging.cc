// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/staging.cc.
#include <algorithm>
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/state/async_lambda.h"
#include "kernels/host/state/staging_names.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

IntrusivePtr<StagingArea> area_of(const PrepareContext& p) {
  const OpInstance& op = p.op();
  return named_staging_area(p.resources(), op.get_string("container"), staging_name(p),
                            staging_limits(op), op.get<std::vector<DType>>("dtypes"));
}

KernelPtr prepare_put(const PrepareContext& p) {
  return make_async_kernel(
      [area = area_of(p), n = p.num_inputs()](RunContext& c, const Done& done) {
        area->put(c, done, staged_inputs(c, 0, n));
      });
}

KernelPtr prepare_get(const PrepareContext& p) {
  return make_async_kernel(
      [area = area_of(p)](RunContext& c, const Done& done) { area->get(c, done); });
}

KernelPtr prepare_peek(const PrepareContext& p) {
  return make_async_kernel([area = area_of(p)](RunContext& c, const Done& done) {
    area->peek(c, done, *c.input(0).data<int32_t>());
  });
}

KernelPtr prepare_size(const PrepareContext& p) {
  return make_kernel(
      [area = area_of(p)](RunContext& c) {
        *c.output(0).data<int32_t>() = static_cast<int32_t>(
            std::min<int64_t>(area->size(), std::numeric_limits<int32_t>::max()));
      },
      50);
}

KernelPtr prepare_clear(const PrepareContext& p) {
  return make_kernel([area = area_of(p)](RunContext&) { area->clear(); }, 500);
}

}  // namespace

void register_staging_kernels(KernelRegistry& r) {
  r.add("Stage", {}, prepare_put);
  r.add("Unstage", {}, prepare_get);
  r.add("StagePeek", {}, prepare_peek);
  r.add("StageSize", {}, prepare_size);
  r.add("StageClear", {}, prepare_clear);
}

}  // namespace treenail::host
