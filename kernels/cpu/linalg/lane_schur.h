// SPDX-License-Identifier: Apache-2.0
// Schur forms a = u t u^H of small matrices, one per vector lane. t is upper triangular; of a real
// matrix it has a block of 2 x 2 on its diagonal for each pair of complex eigenvalues. Lanes need
// different numbers of steps in different rows: each has a window of rows of its own, what is done
// goes down all rows, and a lane keeps its bits outside its window. So a matrix has the same
// results whatever its neighbours need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/linalg/lane_householder.h"

namespace treenail::cpu {

template <class T>
struct LaneSchur {
  using L = LaneNumber<T>;
  using R = LaneReal<T>;
  using M = LaneMask<T>;  // also a row's number in each lane
  L a[kMostLaneRows * kMostLaneRows];
  L u[kMostLaneRows * kMostLaneRows];  // the identity where no vectors are wanted
  M not_finite, failed;
  R root_of_unit;  // a was divided by its square, a power of two
  int64_t n;
  bool vectors;

  LaneSchur(int64_t order, bool with_vectors) : n(order), vectors(with_vectors) {}

  R unit() const { return root_of_unit * root_of_unit; }
  // a becomes t / unit().
  void solve() {
    scale();
    set_identity<T>(u, n, n);
    for (int64_t k = 0; k + 2 < n; ++k) reduce(k);
    iterate();
    failed = active_;
    if constexpr (kReal) {
      for (int64_t k = 0; k + 1 < n; ++k) split(k);
    }
  }

  // (a[k, k], a[k, k + 1]; a[k + 1, k], a[k + 1, k + 1])
  struct Block {
    L a, b, c, d;
  };
  Block block(int64_t k) const {
    const L* const x = a + k * (n + 1);
    return {x[0], x[1], x[n], x[n + 1]};
  }

 private:
  static constexpr bool kReal = !is_complex_lane<T>;
  // Of blocks that are worked on: two rows of a real matrix may be its eigenvalues' pair.
  static constexpr int64_t kLeastRows = kReal ? 3 : 2;
  static constexpr int64_t kPatience = 10;

  M lo_, hi_, active_, tries_;
  R largest_;

  static M row(int64_t k) { return splat<M>(static_cast<ElementOf<M>>(k)); }

  // A matrix whose squares might leave the range, to where its largest part is from 1 to 4. One
  // that is triangular already keeps all numbers; what is not finite becomes 0.
  void scale() {
    constexpr RealOf<T> kFar = sizeof(RealOf<T>) == 4 ? 0x1p20 : 0x1p100;
    constexpr RealOf<T> kLeast = std::numeric_limits<RealOf<T>>::min();
    largest_ = largest_of<T>(a, n * n, &not_finite);
    const M far = (largest_ > splat<R>(kFar)) | (largest_ < splat<R>(1 / kFar));
    const R root = power_of_two(square_root(greater_of(largest_, splat<R>(kLeast))));
    root_of_unit = (far & ~zeros_beside(a, n, Side::kBelow) & ~not_finite) ? root : splat<R>(1);
    largest_ = largest_ / unit();
    for (int64_t i = 0; i < n * n; ++i) a[i] = choose(not_finite, L{}, a[i] / unit());
  }

  // Leaves nothing below the subdiagonal of column k. (Golub and Van Loan, Matrix Computations,
  // 7.4.3.)
  void reduce(int64_t k) {
    const int64_t count = n - k - 1;
    L v[kMostLaneRows] = {};
    for (int64_t i = 0; i < count; ++i) v[i] = a[(k + 1 + i) * n + k];
    const Reflection<T> reflection(v, 1, count);
    const L tau = reflection.tau;
    a[(k + 1) * n + k] = reflection.first;
    for (int64_t i = k + 2; i < n; ++i) a[i * n + k] = L{};
    for (int64_t c = k + 1; c < n; ++c) {
      reflect_column(v, 1, count, conjugate(tau), a + (k + 1) * n + c, n);
    }
    for (int64_t r = 0; r < n; ++r) reflect_row(v, 1, count, tau, a + r * n + k + 1);
    if (!vectors) return;
    for (int64_t r = 0; r < n; ++r) reflect_row(v, 1, count, tau, u + r * n + k + 1);
  }

  void iterate() {
    constexpr int64_t kMostSteps = 30;  // for an eigenvalue; three are many
    M last = row(-1);
    tries_ = row(0);
    for (int64_t step = 0;; ++step) {
      deflate();
      find_windows();
      if (!any(active_) || step == kMostSteps * n) return;
      tries_ = ((hi_ == last) & (tries_ < row(kPatience))) ? tries_ + row(1) : row(0);
      last = hi_;
      sweep();
    }
  }

  // Elements below the diagonal that are rounding beside their neighbours on it.
  void deflate() {
    constexpr auto kTiny = std::numeric_limits<RealOf<T>>::min() / kRounding<T>;
    for (int64_t k = 1; k < n; ++k) {
      const R beside = size_of(a[(k - 1) * (n + 1)]) + size_of(a[k * (n + 1)]);
      const R least = greater_of((beside == R{} ? largest_ : beside) * kRounding<T>,
                                 splat<R>(kTiny) * static_cast<RealOf<T>>(n));
      L& below = a[k * n + k - 1];
      below = choose(size_of(below) <= least, L{}, below);
    }
  }

  // The rows lo_ to hi_ of each lane: the last block that is to be worked on.
  void find_windows() {
    M end = row(n - 1), open = M{};
    active_ = lo_ = hi_ = M{};
    for (int64_t k = n - 1; k > 0; --k) {
      const M joined = ~is_zero(a[k * n + k - 1]);
      const M begins = joined & ~active_ & (end - row(k - 1) >= row(kLeastRows - 1));
      hi_ = begins ? end : hi_;
      active_ |= begins;
      open = (open | begins) & joined;
      lo_ = open ? row(k - 1) : lo_;
      end = joined ? end : row(k - 1);
    }
  }

  // The last block of 2 x 2 of each lane's window.
  Block corner() const {
    Block found = block(0);
    for (int64_t k = 1; k + 1 < n; ++k) {
      const M here = hi_ == row(k + 1);
      const Block x = block(k);
      found = {choose(here, x.a, found.a), choose(here, x.b, found.b), choose(here, x.c, found.c),
               choose(here, x.d, found.d)};
    }
    return found;
  }
  // Lanes that shifts by the corner's eigenvalues have not brought forward for long: some other
  // shift then.
  M stuck() const { return tries_ == row(kPatience); }

  void sweep() {
    if constexpr (kReal) {
      double_step(corner());
    } else {
      single_step(shift(corner()));
    }
  }

  // --- Complex: one eigenvalue as the shift -----------------------------------------------------

  // That of the corner's eigenvalues which is nearer to its last element (Wilkinson).
  L shift(const Block& x) const {
    const L half = (x.a - x.d) * splat<R>(0.5), product = times(x.b, x.c);
    L root = square_root(mul_add(half, half, product));
    const R along = half.re * root.re + half.im * root.im;
    root = choose(along < R{}, -root, root);
    const L sum = half + root;
    const L to_it = choose(is_zero(sum), L{}, times(product, reciprocal(sum)));
    return choose(stuck(), x.d + from_real<T>(size_of(x.c) * splat<R>(0.75)), x.d - to_it);
  }

  // (conj(x), conj(y); -y, x), with x and y made of length 1 together, on rows and columns k and
  // k + 1.
  struct Turn {
    M active;
    L x, y;
    void rows(L& first, L& second) const {
      const L p = mul_add(conjugate(x), first, times(conjugate(y), second));
      const L q = mul_add(x, second, -times(y, first));
      first = choose(active, p, first);
      second = choose(active, q, second);
    }
    void columns(L& first, L& second) const {
      const L p = mul_add(first, x, times(second, y));
      const L q = mul_add(second, conjugate(x), -times(first, conjugate(y)));
      first = choose(active, p, first);
      second = choose(active, q, second);
    }
  };

  void single_step(L by) {
    for (int64_t k = 0; k + 1 < n; ++k) {
      const M begins = lo_ == row(k), active = active_ & (lo_ <= row(k)) & (hi_ > row(k));
      if (!any(active)) continue;
      const int64_t before = std::max<int64_t>(k - 1, 0);
      const L x = choose(begins, a[k * (n + 1)] - by, a[k * n + before]);
      const L y = choose(begins, a[(k + 1) * n + k], a[(k + 1) * n + before]);
      turn(k, turn_of(active, x, y));
      if (k > 0) {
        L& below = a[(k + 1) * n + k - 1];
        below = choose(active, L{}, below);
      }
    }
  }
  static Turn turn_of(M active, L x, L y) {
    const R unit = greater_of(largest_part(x), largest_part(y));
    x = x / unit, y = y / unit;
    const R length = square_root(add_square(x, add_square(y, R{})));
    return {active & (unit > R{}), x / length, y / length};
  }
  void turn(int64_t k, const Turn& by) {
    for (int64_t c = std::max<int64_t>(k - 1, 0); c < n; ++c) {
      by.rows(a[k * n + c], a[(k + 1) * n + c]);
    }
    for (int64_t r = 0; r < std::min(k + 3, n); ++r) by.columns(a[r * n + k], a[r * n + k + 1]);
    if (!vectors) return;
    for (int64_t r = 0; r < n; ++r) by.columns(u[r * n + k], u[r * n + k + 1]);
  }

  // --- Real: both eigenvalues of the corner as shifts (Francis) ---------------------------------

  // A reflection I - w v^T, which is symmetric, of three rows or columns; of two where the third
  // numbers are 0.
  struct Three {
    M active;
    R w[3], v[3];  // v[0] is 1
    void apply(R* x, int64_t stride, int64_t count) const {
      R sum = x[0];
      for (int64_t i = 1; i < count; ++i) sum = mul_add(v[i], x[i * stride], sum);
      for (int64_t i = 0; i < count; ++i) {
        R& y = x[i * stride];
        y = active ? mul_add(-w[i], sum, y) : y;
      }
    }
  };

  void double_step(const Block& shifts) {
    R first[3];
    for (int64_t k = 0; k + 1 < n; ++k) {
      const M begins = lo_ == row(k), active = active_ & (lo_ <= row(k)) & (hi_ > row(k));
      if (!any(active)) continue;
      const int64_t count = std::min<int64_t>(3, n - k);
      if (any(active & begins)) start(k, shifts, first);
      R x[3] = {};
      for (int64_t i = 0; i < count; ++i) {
        if (k > 0) x[i] = a[(k + i) * n + k - 1];
        x[i] = begins ? first[i] : x[i];
      }
      x[2] = hi_ > row(k + 1) ? x[2] : R{};
      eliminate(k, count, active, begins, x);
    }
  }

  // The first column of (a - s)(a - t) for the corner's eigenvalues s and t, divided by the element
  // below its first; of the rows from k on.
  void start(int64_t k, const Block& corner, R* x) const {
    const M stands = stuck();
    const R size = absolute(corner.c);
    const R s = stands ? mul_add(splat<R>(0.75), size, corner.d) : corner.a;
    const R t = stands ? s : corner.d;
    const R product = stands ? splat<R>(-0.4375) * size * size : corner.b * corner.c;
    const Block top = block(k);
    x[0] = mul_add((s - top.a), (t - top.a), -product) / top.c + top.b;
    x[1] = top.d - top.a - (s - top.a) - (t - top.a);
    x[2] = k + 2 < n ? a[(k + 2) * n + k + 1] : R{};
  }

  void eliminate(int64_t k, int64_t count, M active, M begins, const R* from) {
    const R whole = absolute(from[0]) + absolute(from[1]) + absolute(from[2]);
    active &= whole > R{};
    const R p = from[0] / whole, q = from[1] / whole, r = from[2] / whole;
    const R s = copy_sign(square_root(mul_add(p, p, mul_add(q, q, r * r))), p), sum = p + s;
    // v = (1, q / sum, r / sum), w = v sum / s.
    const Three by = {active, {sum / s, q / s, r / s}, {splat<R>(1), q / sum, r / sum}};
    for (int64_t c = k; c < n; ++c) by.apply(a + k * n + c, n, count);
    if (k > 0) {
      R* const column = a + k * n + k - 1;
      column[0] = (active & ~begins) ? -s * whole : column[0];
      for (int64_t i = 1; i < count; ++i) column[i * n] = active ? R{} : column[i * n];
    }
    for (int64_t r0 = 0; r0 < std::min(k + 4, n); ++r0) by.apply(a + r0 * n + k, 1, count);
    if (!vectors) return;
    for (int64_t r0 = 0; r0 < n; ++r0) by.apply(u + r0 * n + k, 1, count);
  }

  // A block of 2 x 2 that has real eigenvalues becomes upper triangular (LAPACK's lanv2).
  void split(int64_t k) {
    const Block x = block(k);
    const R half = (x.a - x.d) * splat<R>(0.5), square = mul_add(half, half, x.b * x.c);
    const M active = ~is_zero(x.c) & (square >= R{});
    if (!any(active)) return;
    const R z = half + copy_sign(square_root(square), half);
    const R length = square_root(mul_add(z, z, x.c * x.c));
    const R cosine = z / length, sine = x.c / length;
    const auto turn = [&](R& first, R& second) {
      const R p = mul_add(cosine, first, sine * second), q = mul_add(cosine, second, -sine * first);
      first = active ? p : first;
      second = active ? q : second;
    };
    for (int64_t c = k + 2; c < n; ++c) turn(a[k * n + c], a[(k + 1) * n + c]);
    for (int64_t r = 0; r < k; ++r) turn(a[r * n + k], a[r * n + k + 1]);
    if (vectors) {
      for (int64_t r = 0; r < n; ++r) turn(u[r * n + k], u[r * n + k + 1]);
    }
    L* const to = a + k * (n + 1);
    const R across = z == R{} ? z : x.b * x.c / z;
    to[0] = active ? x.d + z : x.a;
    to[1] = active ? x.b - x.c : x.b;
    to[n] = active ? R{} : x.c;
    to[n + 1] = active ? x.d - across : x.d;
  }
};

}  // namespace treenail::cpu
