// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/conditional_accumulator.cc.
#include "framework/runtime/state/conditional_accumulator.h"

#include <algorithm>
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/resource_handle.h"
#include "kernels/host/state/async_lambda.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr std::string_view kAnyHandle = "an accumulator's handle";

template <class Accumulator>
Accumulator& accumulator_from(const Tensor& handle) {
  return resource_from<Accumulator>(handle, std::is_same_v<Accumulator, ConditionalAccumulator>
                                                ? "a dense accumulator's handle"
                                                : "a sparse accumulator's handle");
}

template <class Accumulator>
KernelPtr prepare_handle(const PrepareContext& p) {
  const OpInstance& op = p.op();
  const AccumulatorOptions options{op.get_type("dtype"), op.get<PartialShape>("shape"),
                                   op.get_string("reduction_type") == "MEAN"};
  const std::string& shared = op.get_string("shared_name");
  const std::string name = shared.empty() ? std::string(p.node_name()) : shared;
  const auto accumulator =
      named_accumulator<Accumulator>(p.resources(), op.get_string("container"), name, options);
  return make_kernel(
      [accumulator](RunContext& c) { c.output(0).data<ResourceElement>()->object = accumulator; },
      10);
}

KernelPtr prepare_num_accumulated(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const auto& accumulator = resource_from<ConditionalAccumulatorBase>(c.input(0), kAnyHandle);
        *c.output(0).data<int32_t>() = static_cast<int32_t>(
            std::min<int64_t>(accumulator.num_accumulated(), std::numeric_limits<int32_t>::max()));
      },
      50);
}

KernelPtr prepare_set_global_step(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        resource_from<ConditionalAccumulatorBase>(c.input(0), kAnyHandle)
            .set_global_step(*c.input(1).data<int64_t>());
      },
      100);
}

double cost_of(const PrepareContext& p, int input) {
  return 200 + 0.5 * static_cast<double>(p.input_shape(input).num_elements());
}

KernelPtr prepare_apply(const PrepareContext& p) {
  return make_kernel(
      [place = p.op().get_int("place")](RunContext& c) {
        accumulator_from<ConditionalAccumulator>(c.input(0))
            .apply(*c.input(1).data<int64_t>(), c.input(2), place);
      },
      cost_of(p, 2));
}

KernelPtr prepare_sparse_apply(const PrepareContext& p) {
  return make_kernel(
      [known = p.op().get_bool("has_known_shape"), place = p.op().get_int("place")](RunContext& c) {
        accumulator_from<SparseConditionalAccumulator>(c.input(0))
            .apply(*c.input(1).data<int64_t>(), c.input(2), c.input(3),
                   known ? &c.input(4) : nullptr, place);
      },
      cost_of(p, 2) + cost_of(p, 3));
}

template <class Accumulator>
KernelPtr prepare_take(const PrepareContext& p) {
  return make_async_kernel([dtype = p.op().get_type("dtype")](RunContext& c, const Done& done) {
    Accumulator& accumulator = accumulator_from<Accumulator>(c.input(0));
    accumulator.check_dtype(dtype);
    accumulator.take(c, done, *c.input(1).data<int32_t>());
  });
}

}  // namespace

void register_conditional_accumulator_kernels(KernelRegistry& r) {
  r.add("ConditionalAccumulator", {}, prepare_handle<ConditionalAccumulator>);
  r.add("AccumulatorNumAccumulated", {}, prepare_num_accumulated);
  r.add("AccumulatorSetGlobalStep", {}, prepare_set_global_step);
  r.add("AccumulatorApplyGradient", {}, prepare_apply);
  r.add("AccumulatorTakeGradient", {}, prepare_take<ConditionalAccumulator>);
  r.add("SparseConditionalAccumulator", {}, prepare_handle<SparseConditionalAccumulator>);
  r.add("SparseAccumulatorApplyGradient", {}, prepare_sparse_apply);
  r.add("SparseAccumulatorTakeGradient", {}, prepare_take<SparseConditionalAccumulator>);
}

}  // namespace treenail::host
