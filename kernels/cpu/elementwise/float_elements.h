// SPDX-License-Identifier: Apache-2.0
// Elements of real dtypes as float and back, for kernels whose arithmetic is float whatever the
// tensor holds: one kernel then serves every dtype.
#pragma once

#include <cstdint>

#include "framework/tensor/dtype.h"

namespace treenail::cpu {

// n elements from `at` on as float.
using FloatReader = void (*)(const void* from, int64_t at, int64_t n, float* to);
// n floats to the elements from `at` on.
using FloatWriter = void (*)(const float* from, int64_t n, void* to, int64_t at);

// Of the signed and unsigned integers up to 16 bits, int32, int64 and the floating dtypes.
FloatReader float_reader(DType dtype);
// Of the floating dtypes.
FloatWriter float_writer(DType dtype);

}  // namespace treenail::cpu
