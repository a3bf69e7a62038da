// SPDX-License-Identifier: Apache-2.0
// Running sums and products. Chunks are combined, the combinations run over, and each chunk begins
// with what comes before it: no block waits for another, and the order hangs on the shape alone.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/language/scan.h"
#include "kernels/cuda/scans/scan_pass.h"

namespace treenail::gpu {

template <class C>
struct ScanSum {
  TN_DEVICE static C identity() { return C(0); }
  TN_DEVICE static C combine(C a, C b) { return a + b; }
};
template <class C>
struct ScanProduct {
  TN_DEVICE static C identity() { return C(1); }
  TN_DEVICE static C combine(C a, C b) { return a * b; }
};

// Integers wrap, computed as unsigned ones of the size of an int at least.
template <class C, class S>
TN_DEVICE C entering(S x) {
  if constexpr (std::is_integral_v<S>) {
    return static_cast<C>(x);
  } else {
    return Stored<S>::widen(x);
  }
}
template <class S, class C>
TN_DEVICE S leaving(C x) {
  if constexpr (std::is_integral_v<S>) {
    return static_cast<S>(x);
  } else {
    return Stored<S>::narrow(x);
  }
}

// Of the k-th element that is combined.
TN_DEVICE int64_t place_of(const ScanPass& p, int64_t k) {
  return p.reverse != 0 ? p.extent - 1 - k : k;
}

// The part of a row that a group of lanes has in shared memory.
template <class C>
struct RowTile {
  C* stage;  // of the group
  int lanes, lane;
  const ScanPass& p;

  TN_DEVICE static int padded(int i) { return i + i / 32; }
  TN_DEVICE C& at(int i) const { return stage[padded(i)]; }

  template <class S>
  TN_DEVICE void load(const S* row, int64_t begin, int64_t end, C identity) const {
    for (int i = lane; i < lanes * kScanEach; i += lanes)
      at(i) = begin + i < end ? entering<C>(row[place_of(p, begin + i)]) : identity;
  }
  template <class S>
  TN_DEVICE void store(S* row, int64_t begin, int64_t end) const {
    for (int i = lane; i < lanes * kScanEach && begin + i < end; i += lanes)
      row[place_of(p, begin + i)] = leaving<S>(at(i));
  }

  // What is staged is run over, after `carry`, which becomes what all of it comes to.
  template <class Op>
  TN_DEVICE void run(Op op, C* part, C& carry) const {
    C own = op.identity();
    for (int j = 0; j < kScanEach; ++j) own = op.combine(own, at(lane * kScanEach + j));
    const BlockScan<C> scanned = scan_group(part, lanes, op.identity(), own, op.combine);
    C running = op.combine(carry, scanned.before);
    for (int j = 0; j < kScanEach; ++j) {
      C& x = at(lane * kScanEach + j);
      const C next = op.combine(running, x);
      x = p.exclusive != 0 ? running : next;
      running = next;
    }
    carry = op.combine(carry, scanned.all);
  }
};

// Where `totals` is not null, it gets what each chunk comes to, and y nothing; `before`, where it
// is not, holds what each chunk begins with. Both are [outer, chunks, inner].
template <class Op, class C, class S>
TN_DEVICE void scan_rows(const ScanPass& p, const S* x, const C* before, C* totals, S* y) {
  constexpr int kStage = kMostThreads * kScanEach;
  TN_SHARED(C, stage, kStage + kStage / 32);
  TN_SHARED(C, part, 2 * kMostThreads);
  const int64_t groups = threads() / p.lanes, results = p.outer * p.chunks;
  const int group = group_of(p.lanes), tile_size = p.lanes * kScanEach;
  const RowTile<C> tile = {stage + group * (tile_size + tile_size / 32), p.lanes, lane_of(p.lanes),
                           p};
  for (int64_t base = block() * groups; base < results; base += blocks() * groups) {
    const int64_t result = base + group, row = result / p.chunks * p.extent;
    const int64_t first = result % p.chunks * p.chunk, most = first + p.chunk;
    const int64_t end = result >= results ? 0 : most < p.extent ? most : p.extent;
    C carry = Op::identity();
    if (before != nullptr && result < results) carry = before[result];
    for (int64_t begin = first; begin < most; begin += tile_size) {
      tile.load(x + row, begin, end, Op::identity());
      sync();
      tile.run(Op(), part, carry);
      sync();
      if (totals == nullptr) tile.store(y + row, begin, end);
      sync();
    }
    if (totals != nullptr && result < results && tile.lane == 0) totals[result] = carry;
  }
}

template <class Op, class C, class S>
TN_DEVICE void scan_columns(const ScanPass& p, const S* x, const C* before, C* totals, S* y) {
  const int64_t results = p.outer * p.chunks * p.inner;
  for (int64_t result = first(); result < results; result += stride()) {
    const int64_t column = result % p.inner, above = result / p.inner;
    const int64_t begin = above % p.chunks * p.chunk;
    const int64_t end = begin + p.chunk < p.extent ? begin + p.chunk : p.extent;
    const int64_t offset = above / p.chunks * p.extent * p.inner + column;
    C running = before != nullptr ? before[result] : Op::identity();
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = offset + place_of(p, k) * p.inner;
      const C next = Op::combine(running, entering<C>(x[at]));
      if (totals == nullptr) y[at] = leaving<S>(p.exclusive != 0 ? running : next);
      running = next;
    }
    if (totals != nullptr) totals[result] = running;
  }
}

#define TN_SCAN(Op, C, S, type)                                                                  \
  TN_KERNEL(scan_rows_##Op##_##type, ScanPass p, const S* x, const C* before, C* totals, S* y) { \
    scan_rows<Scan##Op<C>>(p, x, before, totals, y);                                             \
  }                                                                                              \
  TN_KERNEL(scan_columns_##Op##_##type, ScanPass p, const S* x, const C* before, C* totals,      \
            S* y) {                                                                              \
    scan_columns<Scan##Op<C>>(p, x, before, totals, y);                                          \
  }
TN_SCANS(TN_SCAN)

}  // namespace treenail::gpu
