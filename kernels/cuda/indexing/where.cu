// SPDX-License-Identifier: Apache-2.0
// The coordinates of what is not zero, by the size of elements and the bits that count: those of a
// floating-point number without its sign, for -0 is 0, and NaN is not.
#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/indexing/where_space.h"
#include "kernels/cuda/language/bits.h"
#include "kernels/cuda/language/scan.h"

namespace treenail::gpu {

template <class T>
TN_DEVICE bool is_true(T x, uint64_t mask) {
  return (static_cast<uint64_t>(x) & mask) != 0;
}
TN_DEVICE bool is_true(Bits128 x, uint64_t mask) { return ((x.low | x.high) & mask) != 0; }

// A bit for each of the thread's elements of the chunk.
template <class T>
TN_DEVICE unsigned true_ones(const WhereSpace& s, int64_t begin, const T* x) {
  unsigned ones = 0;
  for (int k = 0; k < kWhereEach; ++k) {
    const int64_t i = begin + k;
    if (i < s.n && is_true(x[i], s.mask)) ones |= 1u << k;
  }
  return ones;
}
TN_DEVICE int number_of(unsigned ones) {
  int count = 0;
  for (int k = 0; k < kWhereEach; ++k) count += static_cast<int>(ones >> k & 1u);
  return count;
}
TN_DEVICE int64_t begin_of_thread(int64_t chunk) {
  return chunk * kWhereChunk + static_cast<int64_t>(thread()) * kWhereEach;
}

// counts[chunks] = 0, so that sums before it tell of all.
template <class T>
TN_DEVICE void where_count(const WhereSpace& s, const T* x, uint64_t* counts) {
  TN_SHARED(int, part, 2 * kMostThreads);
  for (int64_t chunk = block(); chunk <= s.chunks; chunk += blocks()) {
    const int own = number_of(true_ones(s, begin_of_thread(chunk), x));
    const BlockScan<int> scanned = sum_before(part, own);
    if (thread() == 0) counts[chunk] = static_cast<uint64_t>(scanned.all);
  }
}

TN_DEVICE void put_coordinates(const WhereSpace& s, int64_t i, int64_t* row) {
  TN_NO_UNROLL
  for (int d = 0; d < s.rank; ++d) {
    const Divided here = divided(s.extent[d], i);
    row[s.rank - 1 - d] = here.rest;
    i = here.quotient;
  }
}

template <class T>
TN_DEVICE void where_put(const WhereSpace& s, const T* x, const uint64_t* before, int64_t* y) {
  TN_SHARED(int, part, 2 * kMostThreads);
  for (int64_t chunk = block(); chunk < s.chunks; chunk += blocks()) {
    const int64_t begin = begin_of_thread(chunk);
    const unsigned ones = true_ones(s, begin, x);
    int64_t row = static_cast<int64_t>(before[chunk]) + sum_before(part, number_of(ones)).before;
    for (int k = 0; k < kWhereEach; ++k) {
      if ((ones >> k & 1u) != 0) put_coordinates(s, begin + k, y + row++ * s.rank);
    }
  }
}

#define TN_WHERE(bytes, T)                                                                     \
  TN_KERNEL(where_count_##bytes, WhereSpace s, const T* x, uint64_t* counts) {                 \
    where_count(s, x, counts);                                                                 \
  }                                                                                            \
  TN_KERNEL(where_put_##bytes, WhereSpace s, const T* x, const uint64_t* before, int64_t* y) { \
    where_put(s, x, before, y);                                                                \
  }
TN_WHERE(1, uint8_t)
TN_WHERE(2, uint16_t)
TN_WHERE(4, uint32_t)
TN_WHERE(8, uint64_t)
TN_WHERE(16, Bits128)

}  // namespace treenail::gpu
