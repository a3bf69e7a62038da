// SPDX-License-Identifier: Apache-2.0
// Sorted row numbers of n indices: those of a row are a run. Numbers from `rows` on choose nothing.
#pragma once

#include <cstdint>

namespace treenail::gpu {

// A run from this length on is worked on by a block for each of its columns' groups.
inline constexpr int kLongRun = 64;

struct RowRuns {
  int64_t n, rows;
  int32_t wide;   // row numbers have 64 bits, else 32
  int32_t lanes;  // threads for a row
};

}  // namespace treenail::gpu
