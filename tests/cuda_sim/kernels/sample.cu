// SPDX-License-Identifier: Apache-2.0
// Kernels for the tests of the simulation itself: right ones, and one for each mistake that it
// finds.
#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/language/divisor.h"

namespace treenail::gpu {

// Right.

TN_KERNEL(sample_nothing) {}
TN_KERNEL(sample_increment, int64_t n, int* y) {
  for (int64_t i = first(); i < n; i += stride()) ++y[i];
}
TN_KERNEL(sample_read, const int* x, int* y) {
  if (first() == 0) *y = *x;
}
TN_KERNEL(sample_place, int64_t* y) {
  const int64_t at = (block_y() * blocks() + block()) * threads() + thread();
  y[at] = block_y() * 1000000 + block() * 1000 + thread();
}

TN_KERNEL(sample_quotients, int64_t n, int64_t size, int64_t* x) {
  const Divisor divisor = divisor_of(size);
  for (int64_t i = first(); i < n; i += stride()) x[i] = quotient(divisor, x[i]);
}

// Partial sums by lanes, warps and blocks. The grid is so small that no order of atomics matters.
TN_KERNEL(sample_sum, int64_t n, const float* x, float* y) {
  TN_SHARED(float, sums, kMostThreads);
  float sum = 0;
  for (int64_t i = first(); i < n; i += stride()) sum += x[i];
  for (int down = warp_size() / 2; down > 0; down /= 2) sum += shuffle_down(sum, down);
  const int warps = threads() / warp_size();
  if (thread() % warp_size() == 0) sums[thread() / warp_size()] = sum;
  sync();
  if (thread() != 0) return;
  sum = 0;
  for (int i = 0; i < warps; ++i) sum += sums[i];
  atomic_add(y, sum);
}
TN_KERNEL(sample_butterfly, int* y) {
  int sum = thread();
  for (int mask = 1; mask < warp_size(); mask *= 2) sum += shuffle_xor(sum, mask);
  y[thread()] = sum;
}
TN_KERNEL(sample_reverse, int* y) {
  TN_DYNAMIC_SHARED(int, all);
  for (int round = 0; round < 3; ++round) {
    all[thread()] = y[thread()];
    sync();
    y[thread()] = all[threads() - 1 - thread()];
    sync();
  }
}
TN_KERNEL(sample_warp_reverse, int* y) {
  TN_SHARED(int, all, kMostThreads);
  const int begin = thread() / warp_size() * warp_size(), lane = thread() - begin;
  all[thread()] = y[thread()];
  sync_warp();
  y[thread()] = all[begin + warp_size() - 1 - lane];
}
TN_KERNEL(sample_extremes, const int* x, int* least, int* most, unsigned* counts) {
  atomic_min(least, x[first()]);
  atomic_max(most, x[first()]);
  atomic_add(&counts[x[first()] & 1], 1u);
}

struct SamplePair {
  int* to;
  int64_t value;
};
TN_KERNEL(sample_struct, SamplePair pair) {
  if (first() == 0) *pair.to = static_cast<int>(pair.value);
}

// Wrong.

TN_KERNEL(sample_race_of_threads, int* y) { *y += thread(); }
TN_KERNEL(sample_race_of_blocks, int* y) {
  if (thread() == 0) *y += 1;
}
TN_KERNEL(sample_race_of_blocks_that_sync, int* y) {
  sync();
  if (thread() == 0) *y += 1;
  sync();
}
TN_KERNEL(sample_no_barrier, int* y) {
  TN_SHARED(int, all, kMostThreads);
  all[thread()] = thread();
  y[thread()] = all[threads() - 1 - thread()];
}
// The second round begins while others still read the first.
TN_KERNEL(sample_one_barrier, int* y) {
  TN_SHARED(int, all, kMostThreads);
  for (int round = 0; round < 2; ++round) {
    all[thread()] = round;
    sync();
    y[thread()] = all[threads() - 1 - thread()];
  }
}
TN_KERNEL(sample_shuffle_as_fence, int* y) {
  TN_SHARED(int, all, kMostThreads);
  all[thread()] = thread();
  shuffle_down(0, 1);
  y[thread()] = all[thread() ^ 1];
}
TN_KERNEL(sample_warp_as_block, int* y) {
  TN_SHARED(int, all, kMostThreads);
  all[thread()] = thread();
  sync_warp();
  y[thread()] = all[threads() - 1 - thread()];
}
TN_KERNEL(sample_divergent, int* y) {
  if (thread() < threads() / 2) sync();
  y[thread()] = 1;
}
TN_KERNEL(sample_divergent_shuffle, int* y) {
  if (thread() % 2 == 0) y[thread()] = shuffle_down(1, 2);
}
TN_KERNEL(sample_overrun, int n) {
  TN_SHARED(int, all, 16);
  if (thread() < n) all[thread()] = 1;
}
TN_KERNEL(sample_dynamic_overrun, int n) {
  TN_DYNAMIC_SHARED(int, all);
  if (thread() < n) all[thread()] = 1;
}
TN_KERNEL(sample_too_much_shared) {
  TN_SHARED(char, all, 49153);
  all[0] = 0;
}

}  // namespace treenail::gpu
