// SPDX-License-Identifier: Apache-2.0
// Device code over the columns of column_space.h.
#pragma once

#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/normalization/column_space.h"

namespace treenail::gpu {

inline constexpr int kTogether = 8;  // elements that a thread reads before it uses any

// What a thread does of a column: elements from begin to before end, `lanes` apart; none where it
// has no column.
struct Piece {
  int64_t column, number, begin, end;
  // The pieces of a column give results side by side.
  TN_DEVICE int64_t result(const ColumnSpace& s) const { return column * s.pieces + number; }
};
// Whether this thread has what over_lanes() gives.
TN_DEVICE bool leads(const ColumnSpace& s, const Piece& piece) {
  return thread() < s.tile && piece.column < s.columns;
}
TN_DEVICE int64_t piece_size(const ColumnSpace& s, int64_t number) {
  const int64_t left = s.count - number * s.piece;
  return left < s.piece ? left : s.piece;
}

// body(piece) for the pieces of this thread's block; all of its threads make the same calls.
template <class F>
TN_DEVICE void for_pieces(const ColumnSpace& s, F body) {
  const int64_t lane = thread() / s.tile;
  for (int64_t i = block(); i < s.tiles * s.pieces; i += blocks()) {
    const int64_t number = i % s.pieces;
    const int64_t column = i / s.pieces * s.tile + thread() % s.tile, begin = number * s.piece;
    const int64_t end = begin + s.piece < s.count ? begin + s.piece : s.count;
    const bool has_one = lane < s.lanes && column < s.columns;
    body(Piece{column, number, has_one ? begin + lane : 0, has_one ? end : 0});
  }
}

// Where some elements of a column lie, `lanes` apart from element `first` of it on.
struct Elements {
  int64_t first, at[kTogether];
  int count;
};

// body(elements) for the elements of a piece, kTogether or what is left at a time.
template <class F>
TN_DEVICE void for_elements(const ColumnSpace& s, const Piece& piece, F body) {
  if (piece.begin >= piece.end) return;
  const int64_t inside_step = s.lanes % s.inner, next_row = (s.columns - 1) * s.inner;
  const int64_t step = s.lanes / s.inner * s.columns * s.inner + inside_step;
  int64_t inside = piece.begin % s.inner;
  int64_t at = (piece.begin / s.inner * s.columns + piece.column) * s.inner + inside;
  TN_NO_UNROLL
  for (int64_t i = piece.begin; i < piece.end; i += kTogether * s.lanes) {
    Elements e;
    e.first = i;
    e.count = 0;
    for (int k = 0; k < kTogether; ++k) {
      e.at[k] = at;
      e.count += i + k * s.lanes < piece.end ? 1 : 0;
      inside += inside_step;
      at += inside < s.inner ? step : step + next_row;
      inside -= inside < s.inner ? 0 : s.inner;
    }
    body(e);
  }
}

// 0 beyond the last one.
template <class S>
TN_DEVICE void read_elements(const S* from, const Elements& e, Computed<S> (&values)[kTogether]) {
  S stored[kTogether] = {};
  for (int k = 0; k < kTogether; ++k) {
    if (k < e.count) stored[k] = from[e.at[k]];
  }
  for (int k = 0; k < kTogether; ++k) values[k] = Stored<S>::widen(stored[k]);
}
template <class S>
TN_DEVICE void write_elements(S* to, const Elements& e, const Computed<S> (&values)[kTogether]) {
  for (int k = 0; k < kTogether; ++k) {
    if (k < e.count) to[e.at[k]] = Stored<S>::narrow(values[k]);
  }
}

// What a column's threads have for their pieces, put together by the first of them. All call.
template <class T, class Combine>
TN_DEVICE T over_lanes(const ColumnSpace& s, T* part, const T& value, Combine combine) {
  const int at = thread(), lane = at / s.tile;
  part[at] = value;
  for (int rest = s.lanes; rest > 1;) {
    const int half = (rest + 1) / 2;
    sync();
    if (lane + half < rest) part[at] = combine(part[at], part[at + half * s.tile]);
    rest = half;
  }
  const T all = part[at];
  sync();  // before the next use of `part`
  return all;
}

// body(column, what its pieces' results give together) for this thread's group of lanes, in every
// lane.
template <class T, class From, class Take, class Combine, class F>
TN_DEVICE void for_columns(const ColumnSpace& s, int lanes, T* part, const From* pieces, Take take,
                           Combine combine, F body) {
  const int64_t groups = threads() / lanes;
  for (int64_t base = block() * groups; base < s.columns; base += blocks() * groups) {
    const int64_t column = base + group_of(lanes);
    T all = {};
    for (int64_t i = lane_of(lanes); column < s.columns && i < s.pieces; i += lanes)
      all = combine(all, take(pieces[column * s.pieces + i], i));
    all = over_group(part, all, lanes, combine);
    if (column < s.columns) body(column, all);
  }
}

// Of two quantities for each piece, to be added.
template <class C>
struct Sums {
  C first, second;
};
template <class C>
TN_DEVICE Sums<C> add(const Sums<C>& a, const Sums<C>& b) {
  return {a.first + b.first, a.second + b.second};
}
struct Add {
  template <class C>
  TN_DEVICE Sums<C> operator()(const Sums<C>& a, const Sums<C>& b) const {
    return add(a, b);
  }
};

}  // namespace treenail::gpu
