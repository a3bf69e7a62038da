// SPDX-License-Identifier: Apache-2.0
// Special functions of two and three operands, one element after another: floats are computed in
// double, doubles in long double. Functions of one operand: kernels/cpu/elementwise/.
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/tile_loops.h"
#include "kernels/host/special/incomplete_beta.h"
#include "kernels/host/special/incomplete_gamma.h"
#include "kernels/host/special/zeta.h"

namespace treenail::host {
namespace {

double widen(float x) { return x; }
long double widen(double x) { return x; }

struct Zeta {
  template <class T>
  static T apply(T x, T q) {
    return static_cast<T>(zeta(widen(x), widen(q)));
  }
};
struct Polygamma {
  template <class T>
  static T apply(T a, T x) {
    return static_cast<T>(polygamma(widen(a), widen(x)));
  }
};

// Outside a > 0 and x > 0 as TensorFlow has it; beyond all numbers the limit.
template <class T>
GammaRatios<T> ratios(T a, T x) {
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  if (x == 0) return {0, a > 0 ? T(1) : kNaN};
  if (!(x > 0) || !(a > 0) || (std::isinf(a) && std::isinf(x))) return {kNaN, kNaN};
  if (std::isinf(a)) return {0, 1};
  if (std::isinf(x)) return {1, 0};
  return gamma_ratios(a, x);
}
struct Igamma {
  template <class T>
  static T apply(T a, T x) {
    return static_cast<T>(ratios(widen(a), widen(x)).p);
  }
};
struct Igammac {
  template <class T>
  static T apply(T a, T x) {
    return static_cast<T>(ratios(widen(a), widen(x)).q);
  }
};
// A derivative of Igamma in a, which `of` takes from P or -Q: the smaller one has the larger
// relative precision.
template <class N, class T, class Of>
T gamma_slope(N a, T x, Of of) {
  const T v = value_of(a);
  if (x == 0) return 0;
  if (!(x > 0) || !(v > 0)) return std::numeric_limits<T>::quiet_NaN();
  if (std::isinf(v) || std::isinf(x)) return 0;
  const auto both = gamma_ratios(a, x);
  return value_of(both.p) < value_of(both.q) ? of(both.p) : -of(both.q);
}
struct IgammaGradA {
  template <class T>
  static T apply(T a, T x) {
    using N = Dual<decltype(widen(x))>;
    return static_cast<T>(
        gamma_slope(N(widen(a), 1), widen(x), [](const N& ratio) { return ratio.slope; }));
  }
};
struct IgammaGradAA {
  template <class T>
  static T apply(T a, T x) {
    using N = Dual<decltype(widen(x))>;
    const Dual<N> variable(N(widen(a), 1), N(1));
    return static_cast<T>(
        gamma_slope(variable, widen(x), [](const Dual<N>& ratio) { return ratio.slope.slope; }));
  }
};

template <class T>
T beta_ratio(T a, T b, T x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b)) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  if (x == 0 || x == 1) return x;
  return static_cast<T>(incomplete_beta(widen(a), widen(b), widen(x)));
}
template <class T>
void beta_loop(void* y, const void* a, const void* b, const void* x, int64_t n, const LoopParams&) {
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  const auto* t = static_cast<const T*>(x);
  auto* r = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = beta_ratio(p[i], q[i], t[i]);
}

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;

constexpr TileOp kOps[] = {
    {"Zeta", kF, each_binary<Zeta, float>(), 100},
    {"Zeta", kD, each_binary<Zeta, double>(), 8000},
    {"Polygamma", kF, each_binary<Polygamma, float>(), 100},
    {"Polygamma", kD, each_binary<Polygamma, double>(), 700},
    {"Igamma", kF, each_binary<Igamma, float>(), 300},
    {"Igamma", kD, each_binary<Igamma, double>(), 1200},
    {"Igammac", kF, each_binary<Igammac, float>(), 200},
    {"Igammac", kD, each_binary<Igammac, double>(), 1500},
    {"IgammaGradA", kF, each_binary<IgammaGradA, float>(), 500},
    {"IgammaGradA", kD, each_binary<IgammaGradA, double>(), 2500},
    {"IgammaGradAA", kF, each_binary<IgammaGradAA, float>(), 1000},
    {"IgammaGradAA", kD, each_binary<IgammaGradAA, double>(), 5000},
    {"Betainc", kF, {{beta_loop<float>}}, 300},
    {"Betainc", kD, {{beta_loop<double>}}, 1500},
};

}  // namespace

void register_special_kernels(KernelRegistry& registry) { add_tile_ops(registry, kOps); }

}  // namespace treenail::host
