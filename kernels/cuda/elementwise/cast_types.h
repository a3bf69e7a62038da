// SPDX-License-Identifier: Apache-2.0
// The pairs of types that Cast has kernels for: all. CAST(from, its name, to, its name).
#pragma once

#define TN_CASTS_FROM(CAST, From, from) \
  CAST(From, from, bool, bool)          \
  CAST(From, from, int8_t, int8)        \
  CAST(From, from, uint8_t, uint8)      \
  CAST(From, from, int16_t, int16)      \
  CAST(From, from, uint16_t, uint16)    \
  CAST(From, from, int32_t, int32)      \
  CAST(From, from, uint32_t, uint32)    \
  CAST(From, from, int64_t, int64)      \
  CAST(From, from, uint64_t, uint64)    \
  CAST(From, from, Float16, float16)    \
  CAST(From, from, BFloat16, bfloat16)  \
  CAST(From, from, float, float32)      \
  CAST(From, from, double, float64)

#define TN_CASTS(CAST)                    \
  TN_CASTS_FROM(CAST, bool, bool)         \
  TN_CASTS_FROM(CAST, int8_t, int8)       \
  TN_CASTS_FROM(CAST, uint8_t, uint8)     \
  TN_CASTS_FROM(CAST, int16_t, int16)     \
  TN_CASTS_FROM(CAST, uint16_t, uint16)   \
  TN_CASTS_FROM(CAST, int32_t, int32)     \
  TN_CASTS_FROM(CAST, uint32_t, uint32)   \
  TN_CASTS_FROM(CAST, int64_t, int64)     \
  TN_CASTS_FROM(CAST, uint64_t, uint64)   \
  TN_CASTS_FROM(CAST, Float16, float16)   \
  TN_CASTS_FROM(CAST, BFloat16, bfloat16) \
  TN_CASTS_FROM(CAST, float, float32)     \
  TN_CASTS_FROM(CAST, double, float64)
