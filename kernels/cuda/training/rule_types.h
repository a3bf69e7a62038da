// SPDX-License-Identifier: Apache-2.0
// The types of variables that a rule is compiled for: ROW(rule, type in memory, its name).
#pragma once

#define TN_RULE_TYPES(ROW, name) \
  ROW(name, float, float32)      \
  ROW(name, double, float64)     \
  ROW(name, Float16, float16)    \
  ROW(name, BFloat16, bfloat16)
