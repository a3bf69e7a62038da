// SPDX-License-Identifier: Apache-2.0
// The CPU's elementary functions, on one number: exp, log, tanh and what is beside them, in
// treenail::gpu. gpu.h comes first, for it says which side they are compiled for.
#pragma once

#include "kernels/cuda/language/gpu.h"

#include "kernels/cpu/simd/vec_math.h"
