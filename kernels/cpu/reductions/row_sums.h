// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a [rows, channels] matrix, per channel, in an order that follows from the
// shape alone. Few channels would leave vectors half empty, so as many rows as make whole vectors
// form a group; some groups form a piece, which is added up from zero and may be another thread's;
// rows that fill no group are added last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

template <class C>
struct RowGroups {
  int64_t rows, channels;
  int64_t group, width;  // rows of a group, elements of a group (whole vectors)
  int64_t groups;        // complete ones
  int64_t per_piece, pieces;

  RowGroups(int64_t rows, int64_t channels) : rows(rows), channels(channels) {
    group = kLanes<C> / std::gcd(channels, int64_t{kLanes<C>});
    width = group * channels;
    groups = rows / group;
    per_piece = std::clamp<int64_t>(32768 / width, 16, 1024);
    pieces = (groups + per_piece - 1) / per_piece;
  }
  int64_t piece_begin(int64_t piece) const { return piece * per_piece; }  // in groups
  int64_t piece_groups(int64_t piece) const {
    return std::min(per_piece, groups - piece * per_piece);
  }
  int64_t rest_begin() const { return groups * group; }  // in rows

  // Per channel: combines partials[piece * stride + ...] over pieces and the lanes of a group, in
  // this order.
  template <class F>
  void for_partials(int64_t channel, int64_t stride, F f) const {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      for (int64_t i = 0; i < group; ++i)
        f(piece * stride + i * channels + channel, piece_groups(piece));
    }
  }
};

// sum[0:width] = the sum over `count` rows of f(vector, where it lies in x, its first column). Rows
// are `width` apart, a multiple of a vector's lanes. Blocks of rows are summed from zero, so that
// the error grows with kBlock + count / kBlock.
template <class C, int kVectors, class F>
TN_INLINE void add_columns(const C* x, int64_t count, int64_t width, int64_t column, C* sum, F& f) {
  constexpr int lanes = kLanes<C>;
  constexpr int64_t kBlock = 64;
  Vec<C> total[kVectors] = {};
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    Vec<C> s[kVectors] = {};
    for (int64_t i = begin; i < end; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        const int64_t j = column + v * lanes, at = i * width + j;
        s[v] += f(load<Vec<C>>(x + at), at, j);
      }
    }
    for (int v = 0; v < kVectors; ++v) total[v] += s[v];
  }
  for (int v = 0; v < kVectors; ++v) store(sum + column + v * lanes, total[v]);
}

template <class C, class F>
TN_INLINE void add_rows(const C* x, int64_t count, int64_t width, C* sum, F f) {
  constexpr int wide = 4;
  int64_t j = 0;
  for (; j + wide * kLanes<C> <= width; j += wide * kLanes<C>)
    add_columns<C, wide>(x, count, width, j, sum, f);
  for (; j < width; j += kLanes<C>) add_columns<C, 1>(x, count, width, j, sum, f);
}

}  // namespace treenail::cpu
