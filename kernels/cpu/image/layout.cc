// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/image/layout.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {
namespace {

constexpr int64_t kGrain = 16384;

// to[j, i] = from[i, j]: squares of registers, the rest one by one.
template <class T>
void transpose_matrix(const T* from, int64_t rows, int64_t columns, T* to) {
  constexpr int lanes = kLanes<T>;
  for (int64_t i = 0; i < rows; i += lanes) {
    int64_t j = 0;
    if (i + lanes <= rows) {
      for (; j + lanes <= columns; j += lanes) {
        Vec<T> square[lanes];
        for (int r = 0; r < lanes; ++r) square[r] = load<Vec<T>>(from + (i + r) * columns + j);
        transpose<T>(square);
        for (int r = 0; r < lanes; ++r) store(to + (j + r) * rows + i, square[r]);
      }
    }
    const int64_t end = std::min<int64_t>(rows, i + lanes);
    for (; j < columns; ++j) {
      for (int64_t r = i; r < end; ++r) to[j * rows + r] = from[r * columns + j];
    }
  }
}

template <class T>
void transpose_images(const RunContext& c, int64_t batch, int64_t rows, int64_t columns,
                      const T* from, T* to) {
  const int64_t image = rows * columns;
  c.parallel_for(batch, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, image)),
                 0.5 * static_cast<double>(image), [&](int64_t i, int64_t end) {
                   for (; i < end; ++i) {
                     transpose_matrix(from + i * image, rows, columns, to + i * image);
                   }
                 });
}

}  // namespace

template <class C>
int64_t ImageLayout<C>::scratch() const {
  const int64_t one = (elements() + 15) / 16 * 16;
  return one * ((channels_second ? 1 : 0) + (half ? 1 : 0));
}

// 16-bit images in the other layout take two steps: widened into the second part of scratch, then
// transposed into the first.
template <class C>
const C* ImageLayout<C>::read(const RunContext& c, const Tensor& from, C* scratch) const {
  if constexpr (std::is_same_v<C, float>) {
    if (half) {
      float* const wide = channels_second ? scratch + (elements() + 15) / 16 * 16 : scratch;
      c.parallel_for(elements(), kGrain, 0.3, [&](int64_t i, int64_t end) {
        widen(from.dtype(), from.raw(), i, end - i, wide + i);
      });
      if (channels_second) transpose_images<float>(c, batch, channels, pixels, wide, scratch);
      return scratch;
    }
  }
  if (!channels_second) return from.data<C>();
  transpose_images<C>(c, batch, channels, pixels, from.data<C>(), scratch);
  return scratch;
}

template <class C>
C* ImageLayout<C>::target(Tensor& to, C* scratch) const {
  return plain() ? to.data<C>() : scratch;
}

template <class C>
void ImageLayout<C>::write(const RunContext& c, const C* computed, Tensor& to, C* scratch) const {
  if constexpr (std::is_same_v<C, float>) {
    if (half) {
      if (channels_second) {
        float* const turned = scratch + (elements() + 15) / 16 * 16;
        transpose_images<float>(c, batch, pixels, channels, computed, turned);
        computed = turned;
      }
      c.parallel_for(elements(), kGrain, 0.5, [&](int64_t i, int64_t end) {
        narrow(to.dtype(), computed + i, end - i, to.raw(), i);
      });
      return;
    }
  }
  if (channels_second) transpose_images<C>(c, batch, pixels, channels, computed, to.data<C>());
}

template struct ImageLayout<float>;
template struct ImageLayout<double>;

}  // namespace treenail::cpu
