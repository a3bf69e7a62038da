// SPDX-License-Identifier: Apache-2.0
// One sweep of an optimiser's formula over arrays. The formulas (elementwise/training.h) are
// compiled here once per compute type, apart from the many ways in which they are driven
// (training.cc): dense, by rows, through tiles of half types.
#pragma once

#include <cstdint>

#include "kernels/elementwise/training.h"

namespace treenail::cpu {

#define TN_RULE(name) k##name,
enum class UpdateRule : int { TN_UPDATE_RULES(TN_RULE) };
#undef TN_RULE

// at[0] is the variable, at[1] ... its slots, g the gradient, n elements each; none overlaps
// another.
template <class F>
using Sweep = void (*)(const F* scalars, const UpdateOptions& options, F* const* at, const F* g,
                       int64_t n);

Sweep<float> float_sweep(UpdateRule rule);
Sweep<double> double_sweep(UpdateRule rule);

}  // namespace treenail::cpu
