// SPDX-License-Identifier: Apache-2.0
// Passes of the transform over rows, Bluestein's convolution, and the store of transforms in use.
#include "kernels/cpu/fft/fft_lanes.h"

#include <list>
#include <mutex>

#include "framework/base/fork.h"
#include "kernels/cpu/fft/fft_butterflies.h"
#include "kernels/cpu/fft/fft_roots.h"
#include "kernels/cpu/fft/fft_rows.h"

namespace treenail::cpu {
namespace {

// One pass: x[q + s (p + m u)] for u < radix become y[q + s (radix p + v)], multiplied by
// e^(-2 pi i p v / (radix m)).
template <class T, int kRadix>
void pass(const T* __restrict in, T* __restrict out, int64_t m, int64_t s, const T* twiddles) {
  constexpr int64_t row = kRow<T>;
  for (int64_t p = 0; p < m; ++p) {
    ComplexVec<T> w[kRadix - 1];
    for (int v = 1; v < kRadix; ++v) {
      const T* t = twiddles + 2 * (p * (kRadix - 1) + v - 1);
      w[v - 1] = {splat<Vec<T>>(t[0]), splat<Vec<T>>(t[1])};
    }
    for (int64_t q = 0; q < s; ++q) {
      const T* const from = in + (q + s * p) * row;
      T* const to = out + (q + s * kRadix * p) * row;
      for (int part = 0; part < kRowParts<T>; ++part) {
        ComplexVec<T> x[kRadix];
        for (int u = 0; u < kRadix; ++u) x[u] = load_row<T>(from + u * m * s * row, part);
        butterfly<T, kRadix>(x);
        store_row<T>(to, part, x[0]);
        for (int v = 1; v < kRadix; ++v) {
          store_row<T>(to + v * s * row, part, p == 0 ? x[v] : times<T>(x[v], w[v - 1]));
        }
      }
    }
  }
}

template <class T>
void pass_odd(const T* __restrict in, T* __restrict out, int radix, int64_t m, int64_t s,
              const T* twiddles) {
  constexpr int64_t row = kRow<T>;
  const T* const roots = twiddles + 2 * m * (radix - 1);
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t q = 0; q < s; ++q) {
      const T* const from = in + (q + s * p) * row;
      T* const to = out + (q + s * radix * p) * row;
      for (int part = 0; part < kRowParts<T>; ++part) {
        ComplexVec<T> x[kLargestRadix];
        x[0] = load_row<T>(from, part);
        for (int u = 1; u < radix; ++u) x[u] = load_row<T>(from + u * m * s * row, part);
        butterfly_odd<T>(x, radix, roots);
        store_row<T>(to, part, x[0]);
        for (int v = 1; v < radix; ++v) {
          const T* t = twiddles + 2 * (p * (radix - 1) + v - 1);
          store_row<T>(to + v * s * row, part,
                       times<T>(x[v], {splat<Vec<T>>(t[0]), splat<Vec<T>>(t[1])}));
        }
      }
    }
  }
}

template <class T>
void push(std::vector<T>& to, Root root) {
  to.push_back(static_cast<T>(root.re));
  to.push_back(static_cast<T>(root.im));
}

// Radices whose product is n: eights and fours first, where the work is.
std::vector<int> radices(int64_t n) {
  std::vector<int> result;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (twos == 1) result.push_back(2);
  for (; twos % 3 != 0 && twos > 1; twos -= 2) result.push_back(4);
  for (; twos >= 3; twos -= 3) result.push_back(8);
  for (int p = 3; n > 1; p += 2) {
    for (; n % p == 0; n /= p) result.push_back(p);
  }
  return result;
}

}  // namespace

bool is_smooth(int64_t n) {
  for (int64_t p = 2; p <= kLargestRadix; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

int64_t convolution_length(int64_t n) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t m = odd;
    while (m < 2 * n - 1) m *= 2;
    if (best == 0 || m < best) best = m;
  }
  return best;
}

template <class T>
LaneFft<T>::LaneFft(int64_t n) : n_(n) {
  if (is_smooth(n)) {
    plan();
  } else {
    plan_bluestein();
  }
}

template <class T>
void LaneFft<T>::plan() {
  int64_t left = n_, width = 1;
  for (const int radix : radices(n_)) {
    const int64_t m = left / radix;
    passes_.push_back({radix, m, width, static_cast<int64_t>(twiddles_.size())});
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t v = 1; v < radix; ++v) push(twiddles_, unit_root(p * v, left));
    }
    if (radix > 5 && radix != 8) {
      for (int j = 0; j < radix; ++j) push(twiddles_, unit_root(j, radix));
    }
    left = m;
    width *= radix;
  }
}

template <class T>
void LaneFft<T>::plan_bluestein() {
  const int64_t m = convolution_length(n_);
  convolution_ = of(m);
  // The chirp's transform is computed in double, in one lane.
  const auto exact = LaneFft<double>::of(m);
  std::vector<double> a(m * kRow<double>), b(m * kRow<double>);
  for (int64_t j = 0; j < n_; ++j) {
    const Root root = unit_root(j * j % (2 * n_), 2 * n_);
    push(chirp_, root);
    for (const int64_t at : {j, (m - j) % m}) {
      a[at * kRow<double>] = root.re;
      a[at * kRow<double> + kRowLanes<double>] = -root.im;
    }
  }
  const double* const result = exact->run(a.data(), b.data());
  for (int64_t k = 0; k < m; ++k) {
    const double* row = result + k * kRow<double>;
    const auto length = static_cast<double>(m);
    push(spectrum_, {row[0] / length, row[kRowLanes<double>] / length});
  }
}

template <class T>
T* LaneFft<T>::run_bluestein(T* a, T* b) const {
  const int64_t m = convolution_->size();
  auto multiply = [](T* row, const T* factor, bool exchange) {
    const ComplexVec<T> w = {splat<Vec<T>>(factor[0]), splat<Vec<T>>(factor[1])};
    for (int part = 0; part < kRowParts<T>; ++part) {
      store_row<T>(row, part, exchanged_if<T>(exchange, times<T>(load_row<T>(row, part), w)));
    }
  };
  for (int64_t j = 0; j < n_; ++j) multiply(a + j * kRow<T>, &chirp_[2 * j], false);
  std::fill(a + n_ * kRow<T>, a + m * kRow<T>, T(0));
  T* x = convolution_->run(a, b);
  for (int64_t k = 0; k < m; ++k) multiply(x + k * kRow<T>, &spectrum_[2 * k], true);
  x = convolution_->run(x, x == a ? b : a);
  for (int64_t k = 0; k < n_; ++k) {
    T* const row = x + k * kRow<T>;
    std::swap_ranges(row, row + kRowLanes<T>, row + kRowLanes<T>);
    multiply(row, &chirp_[2 * k], false);
  }
  return x;
}

template <class T>
T* LaneFft<T>::run(T* a, T* b) const {
  if (convolution_) return run_bluestein(a, b);
  for (const Pass& p : passes_) {
    const T* const w = twiddles_.data() + p.twiddles;
    switch (p.radix) {
      case 2:
        pass<T, 2>(a, b, p.count, p.width, w);
        break;
      case 3:
        pass<T, 3>(a, b, p.count, p.width, w);
        break;
      case 4:
        pass<T, 4>(a, b, p.count, p.width, w);
        break;
      case 5:
        pass<T, 5>(a, b, p.count, p.width, w);
        break;
      case 8:
        pass<T, 8>(a, b, p.count, p.width, w);
        break;
      default:
        pass_odd<T>(a, b, p.radix, p.count, p.width, w);
    }
    std::swap(a, b);
  }
  return a;
}

template <class T>
int64_t LaneFft<T>::bytes() const {
  return static_cast<int64_t>((twiddles_.size() + chirp_.size() + spectrum_.size()) * sizeof(T));
}

// The most recently used first; what the store forgets lives on in the kernels that hold it.
template <class T>
std::shared_ptr<const LaneFft<T>> LaneFft<T>::of(int64_t n) {
  using Plan = std::shared_ptr<const LaneFft<T>>;
  struct Store {
    ForkMutex mutex;
    std::list<Plan> plans;
  };
  static Store* const store = new Store;  // outlives every kernel
  constexpr int64_t kMostBytes = 4 << 20;
  constexpr size_t kMostPlans = 128;
  {
    const std::lock_guard lock(store->mutex);
    if (store->mutex.abandoned()) begin_anew(store->plans);
    for (auto at = store->plans.begin(); at != store->plans.end(); ++at) {
      if ((*at)->size() != n) continue;
      store->plans.splice(store->plans.begin(), store->plans, at);
      return store->plans.front();
    }
  }
  Plan made = std::make_shared<const LaneFft<T>>(n);
  const std::lock_guard lock(store->mutex);
  if (store->mutex.abandoned()) begin_anew(store->plans);
  store->plans.push_front(made);
  int64_t bytes = 0;
  size_t kept = 0;
  for (auto at = store->plans.begin(); at != store->plans.end(); ++at, ++kept) {
    bytes += (*at)->bytes();
    if (kept > 0 && (bytes > kMostBytes || kept >= kMostPlans)) {
      store->plans.erase(at, store->plans.end());
      break;
    }
  }
  return made;
}

template class LaneFft<float>;
template class LaneFft<double>;

}  // namespace treenail::cpu
