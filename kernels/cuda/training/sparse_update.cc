// SPDX-License-Identifier: Apache-2.0
// Optimisers' updates of rows of variables.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "framework/op/op_registry.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/row_order_host.h"
#include "kernels/cuda/training/rule_types.h"
#include "kernels/cuda/training/update_host.h"
#include "kernels/elementwise/training.h"

namespace treenail::cuda {
namespace {

using host::LockedVariables;
using host::UpdatePlaces;

#define TN_TYPED_RULE(name, S, type) \
  {#name, dtype_of<S>, GpuFunction("update_rows_" #name "_" #type)},
#define TN_RULE(name) TN_RULE_TYPES(TN_TYPED_RULE, name)
constinit const RuleFunction kRules[] = {TN_ROW_UPDATE_RULES(TN_RULE)};
#undef TN_RULE
#undef TN_TYPED_RULE
#define TN_TYPED_SWEEP(name, S, type) {#name, dtype_of<S>, GpuFunction("sweep_" #name "_" #type)},
constinit const RuleFunction kSweeps[] = {TN_RULE_TYPES(TN_TYPED_SWEEP, AdamDecay)
                                              TN_RULE_TYPES(TN_TYPED_SWEEP, AdamMove)};
#undef TN_TYPED_SWEEP

constexpr std::string_view kPrefix = "ResourceSparseApply";

// One run of an update, queued in parts while the variables are locked.
class RowUpdate {
 public:
  RowUpdate(RunContext& c, CudaDevice& device, const UpdatePlaces& places, DType dtype)
      : device_(device),
        places_(places),
        locked_(c, places.variables, dtype),
        gradient_(c.input(places.gradient)),
        indices_(c.input(places.indices)),
        scalars_(c, places) {
    locked_.check_row_gradient(gradient_.shape(), indices_.num_elements());
    locked_.pointers(at_);
    rows_ = locked_.shape().dim(0);
    order_.emplace(device, rows_in(rows_, indices_.shape()), indices_);
  }

  void update_rows(const GpuFunction& function) {
    gpu::RowRuns runs = order_->runs();
    const int64_t width = locked_.shape().removed(0).num_elements();
    runs.lanes = lanes_for(width, 1);
    Grid grid = grid_for(device_, runs.n * runs.lanes);
    constexpr int64_t kColumnBlocks = 64;
    grid.blocks_y =
        static_cast<int>(std::clamp<int64_t>(width / (4 * runs.lanes), 1, kColumnBlocks));
    const void* const* const s = scalars_.at;
    function.launch(device_, grid, runs, width, order_->keys(), order_->positions(), fault(),
                    places_.options, s[0], s[1], s[2], s[3], s[4], s[5], at_[0], at_[1], at_[2],
                    at_[3], gradient_.raw());
  }
  void sweep(const GpuFunction& function) {
    const int64_t n = locked_.shape().num_elements();
    const void* const* const s = scalars_.at;
    function.launch(device_, grid_for(device_, n), n, fault(), s[0], s[1], s[2], s[3], s[4], s[5],
                    at_[0], at_[1], at_[2]);
  }
  void report(Failure failure) const { report_bad_row(order_->fault(), indices_, rows_, failure); }

 private:
  const unsigned long long* fault() const { return order_->fault().word(); }

  CudaDevice& device_;
  const UpdatePlaces& places_;
  const LockedVariables locked_;
  const Tensor &gradient_, &indices_;
  const UpdateScalars scalars_;
  void* at_[host::kMaxUpdateVariables] = {};
  int64_t rows_;
  std::optional<RowOrder> order_;
};

std::unique_ptr<Kernel> prepare_update(const PrepareContext& p) {
  const DType dtype = p.op().get_type("T");
  const std::string_view op = p.op().name();
  const GpuFunction& function = rule_function(kRules, op.substr(kPrefix.size()), dtype);
  return make_launching_kernel(p, [&function, dtype, places = UpdatePlaces::of(p.op())](
                                      RunContext& c, CudaDevice& device, Failure failure) {
    RowUpdate update(c, device, places, dtype);
    update.update_rows(function);
    update.report(failure);
  });
}

// Every row decays and moves; those of the gradient accumulate it in between.
std::unique_ptr<Kernel> prepare_adam(const PrepareContext& p) {
  const DType dtype = p.op().get_type("T");
  return make_launching_kernel(
      p, [dtype, &decay = rule_function(kSweeps, "AdamDecay", dtype),
          &accumulate = rule_function(kRules, "AdamAccumulate", dtype),
          &move = rule_function(kSweeps, "AdamMove", dtype),
          places = UpdatePlaces::of(p.op())](RunContext& c, CudaDevice& device, Failure failure) {
        RowUpdate update(c, device, places, dtype);
        update.sweep(decay);
        update.update_rows(accumulate);
        update.sweep(move);
        update.report(failure);
      });
}

}  // namespace

void register_sparse_update_kernels(KernelRegistrations& r) {
  for (const RuleFunction& rule : kRules) {
    const std::string op = concat(kPrefix, rule.name);
    if (OpRegistry::instance().find(op) != nullptr)
      r.add(op, {{"T", {rule.dtype}}}, prepare_update);
    if (rule.name == "AdamAccumulate")
      r.add(concat(kPrefix, "Adam"), {{"T", {rule.dtype}}}, prepare_adam);
  }
}

}  // namespace treenail::cuda
