// SPDX-License-Identifier: Apache-2.0
// Roots of unity, accurate to double precision, for any order in memory of its square root.
#pragma once

#include <cstdint>
#include <vector>

namespace treenail::cpu {

struct Root {
  double re, im;
};

// e^(-2 pi i k / n), 0 <= k < n < 2^60.
Root unit_root(int64_t k, int64_t n);

inline Root times(Root a, Root b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// The same for one n, as the product of two tabulated ones.
class RootTable {
 public:
  explicit RootTable(int64_t n);
  Root operator()(int64_t k) const { return times(coarse_[k >> shift_], fine_[k & mask_]); }
  int64_t order() const { return n_; }

 private:
  int64_t n_;
  int shift_ = 0;
  int64_t mask_ = 0;
  std::vector<Root> coarse_, fine_;
};

}  // namespace treenail::cpu
