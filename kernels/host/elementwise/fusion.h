// SPDX-License-Identifier: Apache-2.0
// Ops that may be steps of a fused group beside those of the table in tile_loops.h: they are
// several steps, or find their loops otherwise.
#pragma once

#include <span>
#include <string_view>

#include "framework/op/op_def.h"
#include "kernels/host/elementwise/tile_engine.h"

namespace treenail::host {

// Adds the steps that compute `op` on registers of its inputs' types; returns the register of the
// result, of the op's output type.
using AddStepsFn = int (*)(TileProgram& program, const OpInstance& op,
                           std::span<const int> operands);

// `accepts`: whether these types can be computed so. Called while kernels register.
void add_fusible_op(std::string_view op, bool (*accepts)(const OpInstance& op), AddStepsFn steps);

}  // namespace treenail::host
