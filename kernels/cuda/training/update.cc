// SPDX-License-Identifier: Apache-2.0
// Optimisers' updates of whole variables.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/elementwise/training.h"
#include "kernels/host/state/update_variables.h"

namespace treenail::cuda {
namespace {

using host::LockedVariables;
using host::UpdatePlaces;

struct Rule {
  std::string_view name;
  GpuFunction float_function, double_function;
};
#define TN_RULE(name) \
  {#name, GpuFunction("update_" #name "_float"), GpuFunction("update_" #name "_double")},
constinit const Rule kRules[] = {TN_UPDATE_RULES(TN_RULE)};
#undef TN_RULE

constexpr std::string_view kPrefix = "ResourceApply";

const Rule& rule_of(std::string_view op) {
  for (const Rule& rule : kRules) {
    if (op.substr(kPrefix.size()) == rule.name) return rule;
  }
  throw internal_error("no rule computes ", op);
}

// What is queued after the locks are free comes later in the queue, too.
template <class F>
void run_update(RunContext& c, CudaDevice& device, const UpdatePlaces& places,
                const GpuFunction& function) {
  const LockedVariables locked(c, places.variables,
                               std::is_same_v<F, double> ? DType::kFloat64 : DType::kFloat32);
  const Tensor& gradient = c.input(places.gradient);
  locked.check_gradient(gradient.shape());
  void* at[host::kMaxUpdateVariables] = {};
  locked.pointers(at);
  const F* s[host::kMaxUpdateScalars] = {};
  for (int i = 0; i < places.num_scalars; ++i) s[i] = c.input(places.scalars[i]).data<F>();
  const int64_t n = gradient.num_elements();
  function.launch(device, grid_for(device, n), n, places.options, s[0], s[1], s[2], s[3], s[4],
                  s[5], static_cast<F*>(at[0]), static_cast<F*>(at[1]), static_cast<F*>(at[2]),
                  static_cast<F*>(at[3]), gradient.data<F>());
}

std::unique_ptr<Kernel> prepare_update(const PrepareContext& p) {
  const Rule& rule = rule_of(p.op().name());
  const bool wide = p.op().get_type("T") == DType::kFloat64;
  return make_launching_kernel(
      p, [&rule, wide, places = UpdatePlaces::of(p.op())](RunContext& c, CudaDevice& device) {
        if (wide) {
          run_update<double>(c, device, places, rule.double_function);
        } else {
          run_update<float>(c, device, places, rule.float_function);
        }
      });
}

}  // namespace

void register_update_kernels(KernelRegistrations& r) {
  for (const Rule& rule : kRules) {
    const std::string op = concat(kPrefix, rule.name);
    if (OpRegistry::instance().find(op) != nullptr)
      r.add(op, {{"T", {DType::kFloat32, DType::kFloat64}}}, prepare_update);
  }
}

}  // namespace treenail::cuda
