// SPDX-License-Identifier: Apache-2.0
// Boxes cropped and padded to others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/host/fft/boxes.h"

namespace treenail::cpu {

using host::Boxes;
using host::kMostAxes;
using host::same_extents;

template <class T>
size_t fitted_bytes(const Boxes& boxes, int64_t width) {
  const int64_t numbers = checked_product(boxes.lines(), boxes.last());
  const auto bytes =
      static_cast<size_t>(checked_product(numbers, width * static_cast<int64_t>(sizeof(T))));
  return (bytes + 63) / 64 * 64;
}

// `width` numbers per element, cropped or padded with zeros to other boxes.
template <class T>
void fit(const RunContext& c, const Boxes& given, const Boxes& wanted, int64_t width, const T* from,
         T* to) {
  const int64_t row = wanted.last() * width, common = std::min(given.last() * width, row);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / row);
  c.parallel_for(wanted.lines(), grain, 0.3 * static_cast<double>(row),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t j = line % wanted.extent[1];
                     const int64_t i = line / wanted.extent[1] % wanted.extent[0];
                     const int64_t b = line / wanted.extent[1] / wanted.extent[0];
                     T* const out = to + line * row;
                     const bool there = i < given.extent[0] && j < given.extent[1];
                     const int64_t some = there ? common : 0;
                     if (some > 0) {
                       const int64_t at = (b * given.extent[0] + i) * given.extent[1] + j;
                       std::copy_n(from + at * given.last() * width, some, out);
                     }
                     std::fill(out + some, out + row, T(0));
                   }
                 });
}

}  // namespace treenail::cpu
