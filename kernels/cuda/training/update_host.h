// SPDX-License-Identifier: Apache-2.0
// What the updates of whole variables and of rows have in common.
#pragma once

#include <cstddef>
#include <string_view>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/host/state/update_variables.h"

namespace treenail::cuda {

// The kernel of a rule for one dtype.
struct RuleFunction {
  std::string_view name;
  DType dtype;
  GpuFunction function;
};

template <size_t kRules>
const GpuFunction& rule_function(const RuleFunction (&rules)[kRules], std::string_view name,
                                 DType dtype) {
  for (const RuleFunction& rule : rules) {
    if (rule.name == name && rule.dtype == dtype) return rule.function;
  }
  throw internal_error("no rule computes ", name, " of ", dtype);
}

// Where the scalars of a run lie; null where the rule has less.
struct UpdateScalars {
  const void* at[host::kMaxUpdateScalars] = {};
  UpdateScalars(RunContext& c, const host::UpdatePlaces& places) {
    for (int i = 0; i < places.num_scalars; ++i) at[i] = c.input(places.scalars[i]).raw();
  }
};

}  // namespace treenail::cuda
