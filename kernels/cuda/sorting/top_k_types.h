// SPDX-License-Identifier: Apache-2.0
// What is sorted by value: ROW(type in memory, its name, type of its keys, their name).
#pragma once

#define TN_TOP_K_TYPES(ROW)                 \
  ROW(float, float32, uint32_t, uint32)     \
  ROW(double, float64, uint64_t, uint64)    \
  ROW(Float16, float16, uint32_t, uint32)   \
  ROW(BFloat16, bfloat16, uint32_t, uint32) \
  ROW(int8_t, int8, uint32_t, uint32)       \
  ROW(uint8_t, uint8, uint32_t, uint32)     \
  ROW(int16_t, int16, uint32_t, uint32)     \
  ROW(uint16_t, uint16, uint32_t, uint32)   \
  ROW(int32_t, int32, uint32_t, uint32)     \
  ROW(uint32_t, uint32, uint32_t, uint32)   \
  ROW(int64_t, int64, uint64_t, uint64)     \
  ROW(uint64_t, uint64, uint64_t, uint64)
