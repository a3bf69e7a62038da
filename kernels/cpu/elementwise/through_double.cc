// SPDX-License-Identifier: Apache-2.0
// Float functions computed in double and rounded once: nearly correctly rounded, simple, and at
// half the width still several times faster than one library call per element.
#include <cmath>

#include "kernels/cpu/elementwise/through_double.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
// In float, but for the elements too large for it, which go through double each by itself.
template <class Op>
TN_INLINE VecF evaluate_float(VecF x) {
  VecF y = Op::apply(x);
  const auto large = ~(absolute(x) <= splat<VecF>(kMostFloatRadians));
  if (__builtin_expect(any(large), 0)) {
    y = large ? ThroughDouble<Op>::apply(x) : y;
  }
  return y;
}
template <class Op>
void sine_loop(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams&) {
  constexpr int64_t kWide = kLanes<float>;
  const auto* p = static_cast<const float*>(a);
  auto* r = static_cast<float*>(y);
  for (; n >= kWide; n -= kWide, p += kWide, r += kWide)
    store(r, evaluate_float<Op>(load<VecF>(p)));
  if (n > 0) store_part(r, evaluate_float<Op>(load_part<VecF>(p, n)), n);
}
template <class Op>
struct InFloat {
  static constexpr bool kIsLong = true;
  TN_INLINE static VecF apply(VecF x) { return evaluate_float<Op>(x); }
};
template <class Op>
constexpr Loops sine_loops() {
  return {{sine_loop<Op>}, unary_forms<InFloat<Op>, float>()};
}
#else
template <class Op>
constexpr Loops sine_loops() {
  return loops_through_double<Op>();
}
#endif

// Where |x| is small the first terms of the series are exact enough, and the closed form would
// cancel.
TN_INLINE VecD near_zero(VecD x, double below, VecD series, VecD closed) {
  return absolute(x) < number(below) ? series : closed;
}

constexpr int64_t kL = kLanes<double>;

struct Limited {
  static constexpr bool kLimited = true;
};

struct Log1p : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD series = x - x * x * (number(0.5) - x * number(1.0 / 3));
    const VecD closed = log(number(1) + x);
    return near_zero(x, 1e-5, x == VecD{} ? x : series, closed);
  }
};
struct Sinh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD z = x * x;
    const VecD series = x + x * z * (number(1.0 / 6) + z * number(1.0 / 120));
    const VecD e = exp(x);
    return near_zero(x, 0.01, x == VecD{} ? x : series, number(0.5) * (e - number(1) / e));
  }
};
struct Cosh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD e = exp(absolute(x));
    return number(0.5) * (e + number(1) / e);
  }
};
struct Asinh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD a = absolute(x);
    const VecD closed = log(a + square_root(a * a + number(1)));
    return near_zero(x, 1e-4, x == VecD{} ? x : x - x * x * x * number(1.0 / 6),
                     copy_sign(closed, x));
  }
};
struct Acosh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD y = log(x + square_root((x - number(1)) * (x + number(1))));
    return x < number(1) ? number(kNaN) : y;
  }
};
struct Atanh : Unlimited {
  TN_INLINE static VecD apply(VecD x) {
    const VecD closed = number(0.5) * log((number(1) + x) / (number(1) - x));
    return near_zero(x, 1e-4, x == VecD{} ? x : x + x * x * x * number(1.0 / 3), closed);
  }
};
struct Sin : Limited {
  TN_INLINE static VecD apply(VecD x) { return x == VecD{} ? x : sine_cosine(x).sine; }
  static float library(float x) { return std::sin(x); }
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  TN_INLINE static VecF apply(VecF x) {
    const QuadrantF q = quadrant(x);
    const VecF y = (q.n & 1) != 0 ? q.cosine : q.sine;
    return x == VecF{} ? x : ((q.n & 2) != 0 ? -y : y);
  }
#endif
};
struct Cos : Limited {
  TN_INLINE static VecD apply(VecD x) { return sine_cosine(x).cosine; }
  static float library(float x) { return std::cos(x); }
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  TN_INLINE static VecF apply(VecF x) {
    const QuadrantF q = quadrant(x);
    const VecF y = (q.n & 1) != 0 ? q.sine : q.cosine;
    return ((q.n + 1) & 2) != 0 ? -y : y;
  }
#endif
};
struct Tan : Limited {
  TN_INLINE static VecD apply(VecD x) {
    const SineCosine p = sine_cosine(x);
    return x == VecD{} ? x : p.sine / p.cosine;
  }
  static float library(float x) { return std::tan(x); }
};

// 2^52: from here on every double is a whole number, and every float an even one.
constexpr double kWhole = 4503599627370496.0;
TN_INLINE auto is_whole(VecD y) {
  const VecD a = absolute(y), magic = number(kWhole);
  return ((a + magic) - magic == a) | (a >= magic);
}
TN_INLINE auto is_odd(VecD y) { return is_whole(y) & ~is_whole(y * number(0.5)); }

// |x|^y = e^(y log|x|), then the cases in which IEEE 754's pow departs from that.
__attribute__((noinline)) VecD power_anywhere(VecD x, VecD y) {
  const VecD a = absolute(x), infinity = number(kInfinity);
  VecD r = exp(y * log(a));
  const auto one_to_infinity = (a == number(1)) & (y == y);
  r = one_to_infinity ? number(1) : r;
  const auto negative_power = (bits<VecL>(x) < 0) & is_odd(y);
  r = negative_power ? -r : r;
  const auto not_real = (x < VecD{}) & (a < infinity) & (absolute(y) < infinity) & ~is_whole(y);
  r = not_real ? number(kNaN) : r;
  const auto always_one = (y == VecD{}) | (x == number(1));
  return always_one ? number(1) : r;
}
TN_INLINE VecD power(VecD x, VecD y) {
  const VecD t = y * log_normal(x);
  const auto plain =
      (x >= number(1e-300)) & (x < number(kInfinity)) & (absolute(t) <= number(kExpNormal<VecD>));
  return __builtin_expect(any(~plain), 0) ? power_anywhere(x, y) : exp_normal(t);
}

TN_ONE_BODY void run_power(float* y, const float* a, int64_t sa, const float* b, int64_t sb,
                           int64_t n) {
  for (; n >= kL; n -= kL, y += kL, a += sa, b += sb) {
    store(y, narrow(power(widen(load<HalfVecF>(a)), widen(load<HalfVecF>(b)))));
  }
  if (n > 0) {
    const VecD p = widen(load_part<HalfVecF>(a, n)), q = widen(load_part<HalfVecF>(b, n));
    store_part(y, narrow(power(p, q)), n);
  }
}

template <unsigned kMask>
void power_loop(void* y, const void* a, const void* b, const void*, int64_t n, const LoopParams&) {
  const auto* p = static_cast<const float*>(a);
  const auto* q = static_cast<const float*>(b);
  auto* r = static_cast<float*>(y);
  if constexpr (kMask == 1) {
    run_power(r, Copies<float>(a).lane, 0, q, kL, n);
  } else if constexpr (kMask == 2) {
    run_power(r, p, kL, Copies<float>(b).lane, 0, n);
  } else {
    run_power(r, p, kL, q, kL, n);
  }
}

struct Power {
  static constexpr bool kIsLong = true;
  TN_INLINE static VecF apply(VecF x, VecF y) {
    HalfVecF a[2], b[2];
    std::memcpy(a, &x, sizeof x);
    std::memcpy(b, &y, sizeof y);
    a[0] = narrow(power(widen(a[0]), widen(b[0])));
    a[1] = narrow(power(widen(a[1]), widen(b[1])));
    std::memcpy(&x, a, sizeof x);
    return x;
  }
};
constexpr Loops power_loops() {
  return {{power_loop<0>, power_loop<1>, power_loop<2>}, binary_forms<Power, float>()};
}

constexpr DType kF = DType::kFloat32;

constexpr host::TileOp kOps[] = {
    {"Log1p", kF, loops_through_double<Log1p>(), 2.0f},
    {"Sin", kF, sine_loops<Sin>(), 1.0f},
    {"Cos", kF, sine_loops<Cos>(), 1.0f},
    {"Tan", kF, loops_through_double<Tan>(), 1.5f},
    {"Sinh", kF, loops_through_double<Sinh>(), 2.0f},
    {"Cosh", kF, loops_through_double<Cosh>(), 2.0f},
    {"Asinh", kF, loops_through_double<Asinh>(), 3.0f},
    {"Acosh", kF, loops_through_double<Acosh>(), 3.0f},
    {"Atanh", kF, loops_through_double<Atanh>(), 3.0f},
    {"Pow", kF, power_loops(), 4.0f},
};

}  // namespace

void register_through_double_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
}

}  // namespace treenail::cpu
