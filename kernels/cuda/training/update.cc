// SPDX-License-Identifier: Apache-2.0
// Optimisers' updates of whole variables.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/op/op_registry.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/training/rule_types.h"
#include "kernels/cuda/training/update_host.h"
#include "kernels/elementwise/training.h"

namespace treenail::cuda {
namespace {

using host::LockedVariables;
using host::UpdatePlaces;

#define TN_TYPED_RULE(name, S, type) {#name, dtype_of<S>, GpuFunction("update_" #name "_" #type)},
#define TN_RULE(name) TN_RULE_TYPES(TN_TYPED_RULE, name)
constinit const RuleFunction kRules[] = {TN_UPDATE_RULES(TN_RULE)};
#undef TN_RULE
#undef TN_TYPED_RULE

constexpr std::string_view kPrefix = "ResourceApply";

// What is queued after the locks are free comes later in the queue, too.
void run_update(RunContext& c, CudaDevice& device, const UpdatePlaces& places, DType dtype,
                const GpuFunction& function) {
  const LockedVariables locked(c, places.variables, dtype);
  const Tensor& gradient = c.input(places.gradient);
  locked.check_gradient(gradient.shape());
  void* at[host::kMaxUpdateVariables] = {};
  locked.pointers(at);
  const UpdateScalars s(c, places);
  const int64_t n = gradient.num_elements();
  function.launch(device, grid_for(device, n), n, places.options, s.at[0], s.at[1], s.at[2],
                  s.at[3], s.at[4], s.at[5], at[0], at[1], at[2], at[3], gradient.raw());
}

std::unique_ptr<Kernel> prepare_update(const PrepareContext& p) {
  const DType dtype = p.op().get_type("T");
  const std::string_view op = p.op().name();
  const GpuFunction& function = rule_function(kRules, op.substr(kPrefix.size()), dtype);
  return make_launching_kernel(
      p, [&function, dtype, places = UpdatePlaces::of(p.op())](RunContext& c, CudaDevice& device) {
        run_update(c, device, places, dtype, function);
      });
}

}  // namespace

void register_update_kernels(KernelRegistrations& r) {
  for (const RuleFunction& rule : kRules) {
    const std::string op = concat(kPrefix, rule.name);
    if (OpRegistry::instance().find(op) != nullptr)
      r.add(op, {{"T", {rule.dtype}}}, prepare_update);
  }
}

}  // namespace treenail::cuda
