// SPDX-License-Identifier: Apache-2.0
// Runs of equal row numbers.
#pragma once

#include "kernels/cuda/indexing/row_runs.h"
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

struct Run {
  int64_t row, begin, end;  // none where they are equal
};

TN_DEVICE int64_t row_at(const RowRuns& r, const void* keys, int64_t slot) {
  if (r.wide != 0) return static_cast<int64_t>(static_cast<const uint64_t*>(keys)[slot]);
  return static_cast<const uint32_t*>(keys)[slot];
}

// The run that begins at `slot`, and no more of it than `most`.
TN_DEVICE Run run_from(const RowRuns& r, const void* keys, int64_t slot, int64_t most) {
  const int64_t row = row_at(r, keys, slot);
  const bool inside = slot > 0 && row_at(r, keys, slot - 1) == row;
  if (row >= r.rows || inside) return {row, slot, slot};
  int64_t end = slot + 1;
  const int64_t last = r.n - slot < most ? r.n : slot + most;
  while (end < last && row_at(r, keys, end) == row) ++end;
  return {row, slot, end};
}

// The first slot of [low, high) whose row is `row` or more.
TN_DEVICE int64_t first_of_row(const RowRuns& r, const void* keys, int64_t low, int64_t high,
                               int64_t row) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (row_at(r, keys, middle) < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The run of kLongRun slots or more in which slot mark * kLongRun is the first such slot.
TN_DEVICE Run long_run_at(const RowRuns& r, const void* keys, int64_t mark) {
  const int64_t slot = mark * kLongRun, row = row_at(r, keys, slot);
  const bool inside = mark > 0 && row_at(r, keys, slot - kLongRun) == row;
  if (row >= r.rows || inside) return {row, slot, slot};
  const int64_t low = mark > 0 ? slot - kLongRun : 0;
  const int64_t begin = first_of_row(r, keys, low, slot, row);
  const int64_t end = first_of_row(r, keys, slot, r.n, row + 1);
  return {row, begin, end - begin < kLongRun ? begin : end};
}

}  // namespace treenail::gpu
