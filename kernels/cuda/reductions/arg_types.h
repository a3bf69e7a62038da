// SPDX-License-Identifier: Apache-2.0
// The types among whose elements extrema are looked for: ROW(type in memory, its name).
#pragma once

#define TN_ARG_TYPES(ROW) \
  ROW(bool, bool)         \
  ROW(int8_t, int8)       \
  ROW(uint8_t, uint8)     \
  ROW(int16_t, int16)     \
  ROW(uint16_t, uint16)   \
  ROW(int32_t, int32)     \
  ROW(uint32_t, uint32)   \
  ROW(int64_t, int64)     \
  ROW(uint64_t, uint64)   \
  ROW(Float16, float16)   \
  ROW(BFloat16, bfloat16) \
  ROW(float, float32)     \
  ROW(double, float64)
