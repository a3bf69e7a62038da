// SPDX-License-Identifier: Apache-2.0
// Axes are put in the order of the target's strides, neighbours that continue each other become one
// axis, and neighbouring elements that stay together become one larger element. What is left is
// copied in one of four ways: rows (both innermost strides 1), fills (source stride 0), blocks (the
// source is contiguous along another axis than the target: a block of whole cache lines is turned
// in a buffer), or element by element.
#include "kernels/host/arrays/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "framework/base/error.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

constexpr int64_t kLineBytes = 64;

// Elements of one size, at any address: an enlarged element is aligned as its parts are.
template <class T>
T load(const T* from) {
  if constexpr (is_plain_element<T>) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  } else {
    return *from;
  }
}
template <class T>
void store(T* to, const T& value) {
  if constexpr (is_plain_element<T>) {
    std::memcpy(static_cast<void*>(to), &value, sizeof(T));
  } else {
    *to = value;
  }
}

template <class T>
void copy_row(T* to, const T* from, int64_t n) {
  if constexpr (is_plain_element<T>) {
    if (n * static_cast<int64_t>(sizeof(T)) >= kLineBytes) {
      std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(T));
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) store(to + i, load(from + i));
}

template <class T>
void copy_strided(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(to + i * to_stride, load(from + i * from_stride));
}

// to[j][i] = from[i][j] for `width` rows of the source and `height` of the target, a cache line of
// elements at most; rows lie `from_row` and `to_row` apart.
template <class T>
void turn_block(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t height,
                int64_t width) {
  constexpr int64_t kSide = kLineBytes / static_cast<int64_t>(sizeof(T));
  if (width < kSide || height < kSide) {
    for (int64_t j = 0; j < height; ++j)
      copy_strided(to + j * to_row, 1, from + j, from_row, width);
    return;
  }
  T block[kSide][kSide];
  for (int64_t i = 0; i < kSide; ++i) {
    for (int64_t j = 0; j < kSide; ++j) block[j][i] = load(from + i * from_row + j);
  }
  for (int64_t j = 0; j < kSide; ++j)
    std::memcpy(static_cast<void*>(to + j * to_row), block[j], kLineBytes);
}

}  // namespace

StridedCopy& StridedCopy::axis(int64_t extent, int64_t from_stride, int64_t to_stride) {
  elements_ *= extent;
  if (extent == 1) return *this;
  axes_.push_back({extent, from_stride, to_stride});
  return *this;
}

StridedCopy& StridedCopy::offsets(int64_t from, int64_t to) {
  from_offset_ = from;
  to_offset_ = to;
  return *this;
}

void StridedCopy::simplify() {
  if (axes_.empty()) return;
  std::stable_sort(axes_.begin(), axes_.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  size_t kept = 0;
  for (size_t i = 1; i < axes_.size(); ++i) {
    Axis& outer = axes_[kept];
    const Axis& inner = axes_[i];
    if (outer.from == inner.from * inner.extent && outer.to == inner.to * inner.extent) {
      outer = {outer.extent * inner.extent, inner.from, inner.to};
    } else {
      axes_[++kept] = inner;
    }
  }
  axes_.resize(kept + 1);
}

void StridedCopy::widen_elements() {
  element_bytes_ = static_cast<int64_t>(dtype_size(dtype_));
  if (!is_plain(dtype_)) return;
  while (!axes_.empty()) {
    const Axis last = axes_.back();
    if (last.from != 1 || last.to != 1) return;
    const int64_t bytes = last.extent * element_bytes_;
    if (bytes > 16 || (bytes & (bytes - 1)) != 0) return;
    const auto whole = [&](int64_t stride) { return stride % last.extent == 0; };
    bool aligned = whole(from_offset_) && whole(to_offset_);
    for (size_t i = 0; i + 1 < axes_.size(); ++i)
      aligned = aligned && whole(axes_[i].from) && whole(axes_[i].to);
    if (!aligned) return;
    axes_.resize(axes_.size() - 1);
    from_offset_ /= last.extent;
    to_offset_ /= last.extent;
    for (Axis& axis : axes_) {
      axis.from /= last.extent;
      axis.to /= last.extent;
    }
    element_bytes_ = bytes;
  }
}

StridedCopy& StridedCopy::finish() {
  if (elements_ == 0) return *this;
  simplify();
  widen_elements();
  if (axes_.empty()) axes_.push_back({1, 1, 1});
  const Axis& last = axes_.back();
  way_ = Way::kElements;
  if (last.to == 1 && last.from == 1) {
    way_ = Way::kRows;
  } else if (last.to == 1 && last.from == 0) {
    way_ = Way::kFill;
  } else if (last.to == 1 && last.extent >= 4 && is_plain(dtype_)) {
    for (int i = 0; i + 1 < num_axes(); ++i) {
      if (axes_[i].from == 1 && axes_[i].extent >= 4) block_axis_ = i;
    }
    if (block_axis_ >= 0) {
      way_ = Way::kBlocks;
      std::rotate(axes_.begin() + block_axis_, axes_.begin() + block_axis_ + 1, axes_.end() - 1);
      block_axis_ = num_axes() - 2;
    }
  }
  return *this;
}

double StridedCopy::cost_ns() const {
  if (way_ == Way::kNothing) return 1;
  const double bytes = static_cast<double>(elements_) * static_cast<double>(dtype_size(dtype_));
  if (!is_plain(dtype_)) return 10.0 * static_cast<double>(elements_);
  if (way_ == Way::kRows || way_ == Way::kFill) {
    const double rows = static_cast<double>(elements_) * static_cast<double>(dtype_size(dtype_)) /
                        static_cast<double>(axes_.back().extent * element_bytes_);
    return 5 + 0.1 * bytes + 3 * rows;
  }
  return 5 + 0.5 * bytes;
}

void StridedCopy::locate(int64_t flat, int outer, int64_t& from, int64_t& to) const {
  from = from_offset_;
  to = to_offset_;
  for (int i = outer; i-- > 0;) {
    const int64_t at = flat % axes_[i].extent;
    flat /= axes_[i].extent;
    from += at * axes_[i].from;
    to += at * axes_[i].to;
  }
}

void StridedCopy::run(RunContext& c, const void* from, void* to) const {
  if (way_ == Way::kNothing) return;
  const auto as = [&]<class T>() {
    run_as<T>(c, static_cast<const T*>(from), static_cast<T*>(to));
  };
  switch (dtype_) {
    case DType::kString:
      return as.template operator()<StringElement>();
    case DType::kResource:
      return as.template operator()<ResourceElement>();
    case DType::kVariant:
      return as.template operator()<VariantElement>();
    default:
      break;
  }
  switch (element_bytes_) {
    case 1:
      return as.template operator()<uint8_t>();
    case 2:
      return as.template operator()<uint16_t>();
    case 4:
      return as.template operator()<uint32_t>();
    case 8:
      return as.template operator()<uint64_t>();
    default:
      return as.template operator()<Bits128>();
  }
}

template <class T>
void StridedCopy::run_as(RunContext& c, const T* from, T* to) const {
  if (way_ == Way::kBlocks) {
    if constexpr (is_plain_element<T>) run_blocks(c, from, to);
    return;
  }
  run_rows(c, from, to);
}

// One row is the last axis. A single long row is cut into pieces.
template <class T>
void StridedCopy::run_rows(RunContext& c, const T* from, T* to) const {
  const Axis row = axes_.back();
  const auto move = [&](int64_t from_at, int64_t to_at, int64_t n) {
    if (way_ == Way::kRows) {
      copy_row(to + to_at, from + from_at, n);
    } else if (way_ == Way::kFill) {
      const T value = load(from + from_at);
      for (int64_t i = 0; i < n; ++i) store(to + to_at + i, value);
    } else {
      copy_strided(to + to_at, row.to, from + from_at, row.from, n);
    }
  };
  const double element_cost = way_ == Way::kElements ? 1.0 : kMoveCost<T>;
  if (axes_.size() == 1) {
    c.parallel_for(row.extent, kMoveGrain<T>, element_cost, [&](int64_t begin, int64_t end) {
      move(from_offset_ + begin * row.from, to_offset_ + begin * row.to, end - begin);
    });
    return;
  }
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < axes_.size(); ++i) rows *= axes_[i].extent;
  const int64_t grain = std::max<int64_t>(1, kMoveGrain<T> / row.extent);
  c.parallel_for(rows, grain, 3 + element_cost * static_cast<double>(row.extent),
                 [&](int64_t begin, int64_t end) {
                   const Axis& near = axes_[axes_.size() - 2];
                   for (int64_t flat = begin; flat < end;) {
                     int64_t from_at = 0;
                     int64_t to_at = 0;
                     locate(flat, num_axes() - 1, from_at, to_at);
                     const int64_t run = std::min(end - flat, near.extent - flat % near.extent);
                     for (int64_t i = 0; i < run; ++i) {
                       move(from_at, to_at, row.extent);
                       from_at += near.from;
                       to_at += near.to;
                     }
                     flat += run;
                   }
                 });
}

// The source is contiguous along the axis before the last, the target along the last. A block holds
// whole cache lines of both, so that each line is read once and written once, wherever the rows lie
// relative to each other; blocks are gone through in squares, whose rows lie in few pages.
template <class T>
void StridedCopy::run_blocks(RunContext& c, const T* from, T* to) const {
  constexpr int64_t kSide = kLineBytes / static_cast<int64_t>(sizeof(T)), kSquare = 8 * kSide;
  const Axis across = axes_[axes_.size() - 2];  // from stride 1
  const Axis along = axes_.back();              // to stride 1
  int64_t outer = 1;
  for (size_t i = 0; i + 2 < axes_.size(); ++i) outer *= axes_[i].extent;
  const int64_t high = (across.extent + kSquare - 1) / kSquare;
  const int64_t wide = (along.extent + kSquare - 1) / kSquare;
  const int64_t square_bytes = std::min(kSquare, across.extent) * std::min(kSquare, along.extent) *
                               static_cast<int64_t>(sizeof(T));
  const int64_t grain = std::max<int64_t>(1, kMoveBytes / square_bytes);
  c.parallel_for(outer * high * wide, grain, 0.3 * static_cast<double>(square_bytes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit) {
                     int64_t from_at = 0;
                     int64_t to_at = 0;
                     locate(unit / (high * wide), num_axes() - 2, from_at, to_at);
                     const int64_t top = unit / wide % high * kSquare, left = unit % wide * kSquare;
                     const int64_t bottom = std::min(across.extent, top + kSquare);
                     const int64_t right = std::min(along.extent, left + kSquare);
                     for (int64_t y = top; y < bottom; y += kSide) {
                       for (int64_t x = left; x < right; x += kSide) {
                         turn_block(from + from_at + y + x * along.from, along.from,
                                    to + to_at + y * across.to + x, across.to,
                                    std::min(kSide, bottom - y), std::min(kSide, right - x));
                       }
                     }
                   }
                 });
}

Strides dense_strides(const Shape& shape) {
  Strides strides;
  int64_t stride = 1;
  for (int i = shape.rank(); i-- > 0;) {
    strides.of[i] = stride;
    stride *= shape.dim(i);
  }
  return strides;
}

}  // namespace treenail::host
