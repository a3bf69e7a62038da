// SPDX-License-Identifier: Apache-2.0
// The types in memory of what is computed in a type: a row of kernels/elementwise gives a kernel
// for each. Its name is the op's and the type's (dtype_name), as in Add_float16.
#pragma once

// USE(type in memory, its name, arguments...)
#define TN_STORED_float(USE, ...)    \
  USE(float, float32, __VA_ARGS__)   \
  USE(Float16, float16, __VA_ARGS__) \
  USE(BFloat16, bfloat16, __VA_ARGS__)
#define TN_STORED_double(USE, ...) USE(double, float64, __VA_ARGS__)
#define TN_STORED_int32_t(USE, ...) \
  USE(int32_t, int32, __VA_ARGS__)  \
  USE(int8_t, int8, __VA_ARGS__)    \
  USE(uint8_t, uint8, __VA_ARGS__)  \
  USE(int16_t, int16, __VA_ARGS__)  \
  USE(uint16_t, uint16, __VA_ARGS__)
#define TN_STORED_int64_t(USE, ...) \
  USE(int64_t, int64, __VA_ARGS__)  \
  USE(uint32_t, uint32, __VA_ARGS__)
#define TN_STORED_bool(USE, ...) USE(bool, bool, __VA_ARGS__)
