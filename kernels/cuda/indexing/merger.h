// SPDX-License-Identifier: Apache-2.0
// Rows of updates combined into the rows that indices choose, those of one row in their order, so
// that sums have the CPU's bits. A group of lanes takes a short run. A long one is a block's for
// each few columns, which reads many rows at once and then adds one after the other.
#pragma once

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/indexing/row_merge.h"
#include "kernels/cuda/indexing/run.h"
#include "kernels/cuda/language/fault.h"
#include "kernels/cuda/language/group.h"

namespace treenail::gpu {

struct MergeAdd {
  template <class T>
  TN_DEVICE static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
// Integers are combined as they are stored.
template <class S>
using Merged = std::conditional_t<std::is_integral_v<S>, S, Computed<S>>;
template <class S>
TN_DEVICE Merged<S> merged_of(S x) {
  if constexpr (std::is_integral_v<S>) {
    return x;
  } else {
    return Stored<S>::widen(x);
  }
}
template <class S>
TN_DEVICE S stored_of(Merged<S> x) {
  if constexpr (std::is_integral_v<S>) {
    return x;
  } else {
    return Stored<S>::narrow(x);
  }
}

// Of a run of `count` rows: what an operation does with their sum at the end.
template <class Op, class C>
TN_DEVICE C finished(C sum, int64_t count) {
  if constexpr (requires { Op::finish(sum, count); }) {
    return Op::finish(sum, count);
  } else {
    return sum;
  }
}

template <class Op, class S>
struct Merger {
  using C = Merged<S>;
  const RowMerge& m;
  const uint32_t* positions;
  const S* updates;
  S* target;

  TN_DEVICE C update(int64_t slot, int64_t column) const {
    if (m.single != 0) return merged_of(updates[column % m.single]);
    const int64_t row = positions != nullptr ? static_cast<int64_t>(positions[slot]) : slot;
    return merged_of(updates[row * m.width + column]);
  }
  TN_DEVICE C step(C sum, C x) const {
    const C next = Op::apply(sum, x);
    return m.onto != 0 ? merged_of(stored_of<S>(next)) : next;
  }
  TN_DEVICE S& place(const Run& run, int64_t column) const {
    return target[run.row * m.width + column];
  }

  TN_DEVICE void put(const Run& run, int64_t column, C sum) const {
    place(run, column) = stored_of<S>(finished<Op>(sum, run.end - run.begin));
  }

  TN_DEVICE void merge_column(const Run& run, int64_t column) const {
    int64_t slot = run.begin;
    C sum = m.onto != 0 ? merged_of(place(run, column)) : update(slot++, column);
    for (; slot < run.end; ++slot) sum = step(sum, update(slot, column));
    put(run, column, sum);
  }

  // `lanes` columns from `first` on, by a block. `stage`: kStage elements of shared memory.
  static constexpr int kEach = 4, kStage = kEach * kMostThreads;
  TN_DEVICE void merge_columns(const Run& run, int64_t first, int lanes, C* stage) const {
    const int at_once = threads() / lanes, depth = kEach * at_once, lane = lane_of(lanes);
    const bool inside = first + lane < m.width, adds = inside && group_of(lanes) == 0;
    C sum = C();
    if (adds && m.onto != 0) sum = merged_of(place(run, first + lane));
    for (int64_t begin = run.begin; begin < run.end; begin += depth) {
      for (int r = group_of(lanes); r < depth; r += at_once) {
        if (inside && begin + r < run.end)
          stage[r * lanes + lane] = update(begin + r, first + lane);
      }
      sync();
      const int64_t left = run.end - begin;
      const int count = static_cast<int>(left < depth ? left : depth);
      const bool copies = begin == run.begin && m.onto == 0;
      if (adds && copies) sum = stage[lane];
      for (int r = copies ? 1 : 0; adds && r < count; ++r) sum = step(sum, stage[r * lanes + lane]);
      sync();
    }
    if (adds) put(run, first + lane, sum);
  }
};

template <class Op, class S>
TN_DEVICE void merge_short(const RowRuns& r, const RowMerge& m, const void* keys,
                           const uint32_t* positions, const S* updates, S* target,
                           const unsigned long long* fault) {
  if (faulty(fault)) return;
  const Merger<Op, S> merger = {m, positions, updates, target};
  const int64_t groups = threads() / r.lanes;
  for (int64_t slot = block() * groups + group_of(r.lanes); slot < r.n; slot += blocks() * groups) {
    const Run run = run_from(r, keys, slot, kLongRun);
    if (run.begin == run.end || run.end - run.begin == kLongRun) continue;
    const int64_t step = static_cast<int64_t>(blocks_y()) * r.lanes;
    for (int64_t c = static_cast<int64_t>(block_y()) * r.lanes + lane_of(r.lanes); c < m.width;
         c += step)
      merger.merge_column(run, c);
  }
}

template <class Op, class S>
TN_DEVICE void merge_long(const RowRuns& r, const RowMerge& m, const void* keys,
                          const uint32_t* positions, const S* updates, S* target,
                          const unsigned long long* fault) {
  using M = Merger<Op, S>;
  TN_SHARED(typename M::C, stage, M::kStage);
  if (faulty(fault)) return;
  const M merger = {m, positions, updates, target};
  for (int64_t mark = block(); mark * kLongRun < r.n; mark += blocks()) {
    const Run run = long_run_at(r, keys, mark);
    if (run.begin == run.end) continue;
    const int64_t step = static_cast<int64_t>(blocks_y()) * r.lanes;
    for (int64_t c = static_cast<int64_t>(block_y()) * r.lanes; c < m.width; c += step)
      merger.merge_columns(run, c, r.lanes, stage);
  }
}

#define TN_MERGE(Op, S, type)                                                   \
  TN_KERNEL(merge_short_##Op##_##type, RowRuns r, RowMerge m, const void* keys, \
            const uint32_t* positions, const S* updates, S* target,             \
            const unsigned long long* fault) {                                  \
    merge_short<Merge##Op>(r, m, keys, positions, updates, target, fault);      \
  }                                                                             \
  TN_KERNEL(merge_long_##Op##_##type, RowRuns r, RowMerge m, const void* keys,  \
            const uint32_t* positions, const S* updates, S* target,             \
            const unsigned long long* fault) {                                  \
    merge_long<Merge##Op>(r, m, keys, positions, updates, target, fault);       \
  }

}  // namespace treenail::gpu
