// SPDX-License-Identifier: Apache-2.0
// Local response normalisation and its gradient, a thread for each element. Sums over a window are
// added in the order of channels, as on the CPU.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/divisor.h"
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/normalization/lrn_space.h"
#include "kernels/elementwise/through_double.h"

namespace treenail::gpu {

// The sum of f(place of a neighbour) over the channels around element i.
template <class C, class F>
TN_DEVICE C window_sum(const LrnSpace& l, int64_t i, F f) {
  const int64_t channel = divided(l.channels, i).rest, last = l.channels.size - 1;
  const int64_t before = channel < l.radius ? channel : l.radius;
  const int64_t after = last - channel < l.radius ? last - channel : l.radius;
  C sum = 0;
  for (int64_t k = i - before; k <= i + after; ++k) sum += f(k);
  return sum;
}

// bias + alpha * sum of squares
template <class S, class C = Computed<S>>
TN_DEVICE C norm(const LrnSpace& l, int64_t i, const S* x) {
  const C sum = window_sum<C>(l, i, [&](int64_t k) {
    const C v = Stored<S>::widen(x[k]);
    return v * v;
  });
  return static_cast<C>(l.bias) + static_cast<C>(l.alpha) * sum;
}

TN_DEVICE double raised(double x, double power) { return std::pow(x, power); }
TN_DEVICE float raised(float x, float power) {
  return elementwise::narrow(elementwise::power(elementwise::widen(x), elementwise::widen(power)));
}

// n^-beta
template <class C>
TN_DEVICE C power(const LrnSpace& l, C n) {
  const C beta = static_cast<C>(l.beta);
  if (beta == C(0.5)) return C(1) / square_root(n);
  if (beta == C(1)) return C(1) / n;
  if (beta == C(0.75)) return C(1) / (square_root(n) * square_root(square_root(n)));
  return raised(n, -beta);
}

template <class S, class C = Computed<S>>
TN_DEVICE void lrn(const LrnSpace& l, const S* x, S* y) {
  for (int64_t i = first(); i < l.elements; i += stride())
    y[i] = Stored<S>::narrow(Stored<S>::widen(x[i]) * power(l, norm(l, i, x)));
}

// What the gradient needs of neighbours, too: n, and g y / n.
template <class S, class C = Computed<S>>
TN_DEVICE void lrn_terms(const LrnSpace& l, const S* g, const S* x, const S* y, C* norms,
                         C* quotients) {
  for (int64_t i = first(); i < l.elements; i += stride()) {
    const C n = norm(l, i, x);
    norms[i] = n;
    quotients[i] = Stored<S>::widen(g[i]) * Stored<S>::widen(y[i]) / n;
  }
}

// dx = g n^-beta - 2 alpha beta x W(g y / n)
template <class S, class C = Computed<S>>
TN_DEVICE void lrn_gradient(const LrnSpace& l, const S* g, const S* x, const C* norms,
                            const C* quotients, S* dx) {
  const C factor = C(2) * static_cast<C>(l.alpha) * static_cast<C>(l.beta);
  for (int64_t i = first(); i < l.elements; i += stride()) {
    const C sum = window_sum<C>(l, i, [&](int64_t k) { return quotients[k]; });
    const C direct = Stored<S>::widen(g[i]) * power(l, norms[i]);
    dx[i] = Stored<S>::narrow(direct - factor * Stored<S>::widen(x[i]) * sum);
  }
}

#define TN_LRN(S, type)                                                                           \
  TN_KERNEL(lrn_##type, LrnSpace l, const S* x, S* y) { lrn(l, x, y); }                           \
  TN_KERNEL(lrn_terms_##type, LrnSpace l, const S* g, const S* x, const S* y, Computed<S>* norms, \
            Computed<S>* quotients) {                                                             \
    lrn_terms(l, g, x, y, norms, quotients);                                                      \
  }                                                                                               \
  TN_KERNEL(lrn_gradient_##type, LrnSpace l, const S* g, const S* x, const Computed<S>* norms,    \
            const Computed<S>* quotients, S* dx) {                                                \
    lrn_gradient(l, g, x, norms, quotients, dx);                                                  \
  }
TN_LRN(float, float32)
TN_LRN(double, float64)
TN_LRN(Float16, float16)
TN_LRN(BFloat16, bfloat16)

}  // namespace treenail::gpu
