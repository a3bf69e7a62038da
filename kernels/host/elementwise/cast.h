// SPDX-License-Identifier: Apache-2.0
// The steps of the op Cast, between any two numeric types.
#pragma once

#include "framework/tensor/dtype.h"
#include "kernels/host/elementwise/tile_engine.h"

namespace treenail::host {

// Adds the steps that cast `reg` to `to`; returns the register with the result (`reg` itself when
// it has that type).
int add_cast(TileProgram& program, int reg, DType to);

// The loop that limits int32 or int64 elements (`compute`) to params' [value[0], value[1]], and the
// range of a narrower type.
LoopFn clamp_loop_for(DType compute);
LoopParams clamp_params(DType narrow);

}  // namespace treenail::host
