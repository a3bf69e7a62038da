// SPDX-License-Identifier: Apache-2.0
// Exponentials of small matrices, one per vector lane, in double precision whatever the dtype:
// scaling and squaring as in kernels/host/linalg/exponential.cc, which computes larger ones, with
// the approximant of degree 13 for all lanes. Lower degrees only save products, and the lanes of a
// group would seldom agree on one.
#include <cmath>
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_lu.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/cpu/simd/vec_math.h"
#include "kernels/host/linalg/dense_kernels.h"
#include "kernels/host/linalg/pade.h"

namespace treenail::cpu {
namespace {

constexpr int kDegree = 13;

template <class R>
TN_INLINE R ceiling(R x) {
  const R near = round_small(x).value;
  return near < x ? near + splat<R>(1) : near;
}
template <class R>
TN_INLINE R log2(R x) {
  return log(x) * splat<R>(1.44269504088896340736);
}

template <class W>
class LaneExponential {
 public:
  using L = LaneNumber<W>;
  using R = LaneReal<W>;
  using M = LaneMask<W>;
  L a[kMostLaneRows * kMostLaneRows];  // the matrices, and then their exponentials

  explicit LaneExponential(int64_t order) : n_(order), lu_(order, order) {}

  // A lower triangle is transposed. Lanes whose result is known, of diagonals and of what is not
  // finite, go on as zero.
  void compute() {
    M not_finite;
    largest_of<W>(a, n_ * n_, &not_finite);
    const M lower = zeros_beside(a, n_, Side::kAbove), upper = zeros_beside(a, n_, Side::kBelow);
    triangle_ = lower | upper;
    transpose_where(lower, a, n_);
    keep_diagonals();
    const M known = not_finite | (lower & upper);
    for (int64_t i = 0; i < n_ * n_; ++i) a[i] = choose(known, L{}, a[i]);
    R squarings = {};
    if (any(~known)) {
      squarings = scale_down();
      approximate();
    }
    set_diagonals(triangle_, -squarings);
    square(squarings);
    transpose_where(lower, a, n_);
    const L nan = constant<W>(std::numeric_limits<double>::quiet_NaN());
    for (int64_t i = 0; i < n_ * n_; ++i) a[i] = choose(not_finite, nan, a[i]);
  }

 private:
  int64_t n_;
  L even_[3][kMostLaneRows * kMostLaneRows];  // a^2, a^4, a^6
  L sum_[kMostLaneRows * kMostLaneRows], product_[kMostLaneRows * kMostLaneRows];
  LaneLu<W> lu_;
  M triangle_;
  L diagonal_[kMostLaneRows], above_[kMostLaneRows];  // of the given matrix

  void keep_diagonals() {
    for (int64_t i = 0; i < n_; ++i) {
      diagonal_[i] = a[i * (n_ + 1)];
      if (i + 1 < n_) above_[i] = a[i * (n_ + 1) + 1];
    }
  }

  // The diagonal of a triangle's exponential and the one above it, of the given matrix times
  // 2^exponent: repeated squaring loses them where the triangle's norm asks for many (Al-Mohy and
  // Higham, code fragment 2.1).
  void set_diagonals(M where, R exponent) {
    where &= triangle_;
    if (!any(where)) return;
    for (int64_t l = 0; l < kGroup<W>; ++l) {
      if (where[l] == 0) continue;
      const double factor = std::ldexp(1.0, static_cast<int>(exponent[l]));
      for (int64_t i = 0; i < n_; ++i) {
        const W own = factor * element(diagonal_[i], l);
        set_element(a[i * (n_ + 1)], l, W(std::exp(own)));
        if (i + 1 == n_) break;
        const W above = factor * element(above_[i], l),
                next = factor * element(diagonal_[i + 1], l);
        set_element(a[i * (n_ + 1) + 1], l, host::exp_above(own, above, next));
      }
    }
  }

  // The largest sum of sizes in a column, NaN where it is out of range.
  R norm(const L* x) const {
    R largest = {}, nothing = {};
    for (int64_t c = 0; c < n_; ++c) {
      R sum = {};
      for (int64_t r = 0; r < n_; ++r) sum += size_of(x[r * n_ + c]);
      largest = greater_of(sum, largest);
      nothing += sum * R{};
    }
    return largest + nothing;
  }
  // The logarithm of the root of order p of the norm of a^p.
  R root_norm(const L* power, double p) const {
    const R x = norm(power);
    return x == x ? log2(x) / p : splat<R>(std::numeric_limits<double>::infinity());
  }
  void compute_powers() {
    multiply(a, a, n_, n_, n_, even_[0]);
    multiply(even_[0], even_[0], n_, n_, n_, even_[1]);
    multiply(even_[0], even_[1], n_, n_, n_, even_[2]);
  }
  // a becomes a times 2^exponent, of whole numbers.
  void rescale(R exponent) {
    const Int<R> n = round_small(exponent).n;
    auto* const parts = reinterpret_cast<R*>(a);
    const int64_t count = n_ * n_ * static_cast<int64_t>(sizeof(L) / sizeof(R));
    for (int64_t i = 0; i < count; ++i) parts[i] = scale(parts[i], exponent, n);
    compute_powers();
  }

  // Scales the matrices and computes the powers for the approximant; the result: how often to
  // square.
  R scale_down() {
    const R range = bring_into_range(), squarings = count_squarings(range);
    if (any(range != squarings)) rescale(range - squarings);
    return squarings;
  }

  // Where powers are out of range, divides by 2^result, so that the norm is below 1.
  R bring_into_range() {
    compute_powers();
    const R sum = norm(a) + norm(even_[1]) + norm(even_[2]);
    const M out_of_range = sum != sum;
    if (!any(out_of_range)) return R{};
    M not_finite;
    const R largest = ceiling(log2(largest_of<W>(a, n_ * n_, &not_finite)));
    constexpr double kSums = 6;  // of 2^4 numbers of two parts, and rounding
    const R range = out_of_range ? largest + splat<R>(kSums) : R{};
    rescale(-range);
    return range;
  }

  // Of the given matrix, which is a times 2^range. One that grows more than its powers do needs
  // fewer than its norm says.
  R count_squarings(R range) {
    const R sixth = root_norm(even_[2], 6);
    const R most = splat<R>(std::log2(host::kDegrees[4].most)) - range;
    R size = greater_of(root_norm(even_[1], 4), sixth);
    if (any(size > most)) size = lesser_of(later_powers(sixth), size);
    const R first = ceiling(greater_of(size - most, R{}));
    return first + additional_squarings(range - first);
  }
  R later_powers(R sixth) {
    multiply(even_[1], even_[1], n_, n_, n_, product_);
    const R eighth = root_norm(product_, 8);
    multiply(even_[1], even_[2], n_, n_, n_, product_);
    return lesser_of(greater_of(sixth, eighth), greater_of(eighth, root_norm(product_, 10)));
  }

  // How many more make the error of the approximant vanish in rounded arithmetic, too, for a times
  // 2^exponent: by the norm of |a|^27, here by rows (Al-Mohy and Higham, 5.1).
  R additional_squarings(R exponent) const {
    constexpr int kPower = 2 * kDegree;
    const R allowance = splat<R>(std::log2(host::error_coefficient(kDegree)) +
                                 std::numeric_limits<double>::digits) +
                        static_cast<double>(kPower) * exponent;
    R sizes[kMostLaneRows * kMostLaneRows], sums[kMostLaneRows];
    for (int64_t i = 0; i < n_ * n_; ++i) sizes[i] = modulus(a[i]);
    std::fill_n(sums, n_, splat<R>(1));
    // Norms of powers are no greater than powers of the norm.
    const R most = allowance + static_cast<double>(kPower) * log2(multiply_row_sums(sizes, sums));
    const M perhaps = most > R{};
    if (!any(perhaps)) return R{};
    const R excess = allowance + log_growth(kPower, sizes, sums);
    return (perhaps & (excess > R{})) ? ceiling(excess / static_cast<double>(kPower)) : R{};
  }
  // The logarithm of what `times` products multiply the sums by. A function of its own: inlined, it
  // makes GCC 12 crash under the address sanitizer for AVX-512 (in its vectorizer of straight-line
  // code).
  [[gnu::noinline]] R log_growth(int times, const R* sizes, R* sums) const {
    R total = {};
    for (int i = 0; i < times; ++i) total += log2(multiply_row_sums(sizes, sums));
    return total;
  }
  // sums become sizes times sums, divided by the largest one, which is the result.
  R multiply_row_sums(const R* sizes, R* sums) const {
    R next[kMostLaneRows], largest = {};
    multiply(sizes, sums, n_, n_, 1, next);
    for (int64_t i = 0; i < n_; ++i) largest = greater_of(next[i], largest);
    const R inverse = largest == R{} ? R{} : splat<R>(1) / largest;
    for (int64_t i = 0; i < n_; ++i) sums[i] = next[i] * inverse;
    return largest;
  }

  // to = a^6 (b[first + 8] a^2 + b[first + 10] a^4 + b[first + 12] a^6) + b[first] + b[first + 2]
  // a^2 + b[first + 4] a^4 + b[first + 6] a^6.
  void polynomial(const double* b, L* to) {
    const auto terms = [&](const double* factors, int64_t i) {
      return even_[0][i] * splat<R>(factors[0]) + even_[1][i] * splat<R>(factors[2]) +
             even_[2][i] * splat<R>(factors[4]);
    };
    for (int64_t i = 0; i < n_ * n_; ++i) product_[i] = terms(b + 8, i);
    multiply(even_[2], product_, n_, n_, n_, to);
    for (int64_t i = 0; i < n_ * n_; ++i) to[i] = to[i] + terms(b + 2, i);
    for (int64_t i = 0; i < n_; ++i) to[i * (n_ + 1)] = to[i * (n_ + 1)] + constant<W>(b[0]);
  }

  // a = (v - u)^-1 (v + u) for u = a (the odd coefficients), v = the even ones. Divided by the
  // first of them, so that the exponential of a block of zeros is exact.
  void approximate() {
    auto b = host::pade_coefficients(kDegree);
    for (int j = kDegree; j >= 0; --j) b[static_cast<size_t>(j)] /= b[0];
    polynomial(b.data() + 1, sum_);
    multiply(a, sum_, n_, n_, n_, lu_.x);
    polynomial(b.data(), sum_);
    for (int64_t i = 0; i < n_ * n_; ++i) {
      lu_.a[i] = sum_[i] - lu_.x[i];
      lu_.x[i] = sum_[i] + lu_.x[i];
    }
    lu_.factor();
    lu_.substitute_back();
    std::copy_n(lu_.x, n_ * n_, a);
  }

  void square(R squarings) {
    for (int i = 1; any(splat<R>(i) <= squarings); ++i) {
      const M active = splat<R>(i) <= squarings;
      multiply(a, a, n_, n_, n_, product_);
      for (int64_t j = 0; j < n_ * n_; ++j) a[j] = choose(active, product_[j], a[j]);
      set_diagonals(active, splat<R>(i) - squarings);
    }
  }
};

template <class T>
std::unique_ptr<Kernel> prepare_exponential(const PrepareContext& p) {
  using W = host::WideNumber<T>;
  const host::MatrixBatch m(p.input_shape(0));
  if (m.rows > kMostLaneRows || m.count * m.elements() == 0) return host::dense_exponential(p);
  const auto n = static_cast<double>(m.rows);
  const double cost = group_cost(2 * n * n, n * n * (16 * n + 40));
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        T* const to = host::matrices<T>(c.output(0));
        const int64_t size = m.elements();
        each_group<W>(c, m.count, cost, [&](int64_t first, int64_t count) {
          LaneExponential<W> group(m.rows);
          pack_lanes(from + first * size, count, size, group.a);
          group.compute();
          unpack_lanes(group.a, count, size, to + first * size);
        });
      },
      cost * static_cast<double>(m.count) / kGroup<W>);
}

}  // namespace

void register_lane_exponential_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) {
    r.add("MatrixExponential", {{"T", {dtype}}}, prepare_exponential<T>);
  });
}

}  // namespace treenail::cpu
