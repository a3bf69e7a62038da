// SPDX-License-Identifier: Apache-2.0
// The dtypes that a device with memory of its own can take.
#pragma once

#include <optional>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail {

// `constraints` and those of the op, on plain dtypes alone (no strings, no handles); nullopt where
// an attribute has none left.
std::optional<std::vector<TypeConstraint>> plain_constraints(
    const OpDef& def, std::vector<TypeConstraint> constraints);

}  // namespace treenail
