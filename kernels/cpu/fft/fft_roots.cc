// SPDX-License-Identifier: Apache-2.0
// Roots of unity: the angle is brought into the first octant exactly, in integers, before sine and
// cosine are asked.
#include "kernels/cpu/fft/fft_roots.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace treenail::cpu {

Root unit_root(int64_t k, int64_t n) {
  int64_t eighths = 8 * k;  // of the angle 2 pi / (8 n)
  const bool lower = eighths > 4 * n;
  if (lower) eighths = 8 * n - eighths;
  const bool left = eighths > 2 * n;
  if (left) eighths = 4 * n - eighths;
  const bool steep = eighths > n;
  if (steep) eighths = 2 * n - eighths;
  const double angle =
      std::numbers::pi / 4 * (static_cast<double>(eighths) / static_cast<double>(n));
  double cosine = std::cos(angle), sine = std::sin(angle);
  if (steep) std::swap(cosine, sine);
  return {left ? -cosine : cosine, lower ? sine : -sine};
}

RootTable::RootTable(int64_t n) : n_(n) {
  while ((int64_t{1} << (2 * shift_)) < n) ++shift_;
  mask_ = (int64_t{1} << shift_) - 1;
  for (int64_t k = 0; k <= mask_; ++k) fine_.push_back(unit_root(k % n, n));
  for (int64_t k = 0; k < n; k += mask_ + 1) coarse_.push_back(unit_root(k, n));
}

}  // namespace treenail::cpu
