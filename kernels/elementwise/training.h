// SPDX-License-Identifier: Apache-2.0
// The formulas of framework/ops/training.cc, one element at a time: F is float or double, `s` the
// slots in the order of the op's handles, the scalars come in the order of its inputs.
// Straight-line code, so that a sweep becomes vector code.
#pragma once

#include <cmath>

#include "kernels/elementwise/side.h"
#include "kernels/elementwise/update_options.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

template <class F>
TN_INLINE F sign_of(F x) {
  return x > F(0) ? F(1) : x < F(0) ? F(-1) : F(0);
}

// The proximal step of |x| * l1 + x^2 * l2 / 2 with step a.
template <class F>
TN_INLINE F proximal(F x, F a, F l1, F l2) {
  const F shrunk = std::abs(x) - a * l1;
  return sign_of(x) / (F(1) + a * l2) * (shrunk > F(0) ? shrunk : F(0));
}

template <class F>
struct GradientDescentRule {
  static constexpr int kSlots = 0;
  static constexpr int kScalars = 1;
  F alpha;
  TN_INLINE GradientDescentRule(const F* scalar, const UpdateOptions&) : alpha(scalar[0]) {}
  TN_INLINE void operator()(F& var, F g) const { var -= alpha * g; }
};

template <class F>
struct ProximalGradientDescentRule {
  static constexpr int kSlots = 0;
  static constexpr int kScalars = 3;
  F alpha, l1, l2;
  TN_INLINE ProximalGradientDescentRule(const F* scalar, const UpdateOptions&)
      : alpha(scalar[0]), l1(scalar[1]), l2(scalar[2]) {}
  TN_INLINE void operator()(F& var, F g) const { var = proximal(var - alpha * g, alpha, l1, l2); }
};

template <class F>
struct MomentumRule {
  static constexpr int kSlots = 1;
  static constexpr int kScalars = 2;
  F lr, momentum;
  bool nesterov;
  TN_INLINE MomentumRule(const F* scalar, const UpdateOptions& o)
      : lr(scalar[0]), momentum(scalar[1]), nesterov(o.nesterov) {}
  TN_INLINE void operator()(F& var, F& accum, F g) const {
    accum = accum * momentum + g;
    const F step = nesterov ? g + momentum * accum : accum;
    var -= lr * step;
  }
};

template <class F>
struct AdagradRule {
  static constexpr int kSlots = 1;
  static constexpr int kScalars = 1;
  F lr, grow;
  TN_INLINE AdagradRule(const F* scalar, const UpdateOptions& o)
      : lr(scalar[0]), grow(o.update_slots ? F(1) : F(0)) {}
  TN_INLINE void operator()(F& var, F& accum, F g) const {
    accum += grow * g * g;
    var -= lr * g / std::sqrt(accum);
  }
};

template <class F>
struct ProximalAdagradRule {
  static constexpr int kSlots = 1;
  static constexpr int kScalars = 3;
  F lr, l1, l2;
  TN_INLINE ProximalAdagradRule(const F* scalar, const UpdateOptions&)
      : lr(scalar[0]), l1(scalar[1]), l2(scalar[2]) {}
  TN_INLINE void operator()(F& var, F& accum, F g) const {
    accum += g * g;
    const F a = lr / std::sqrt(accum);
    var = proximal(var - a * g, a, l1, l2);
  }
};

template <class F>
struct AdadeltaRule {
  static constexpr int kSlots = 2;
  static constexpr int kScalars = 3;
  F lr, rho, epsilon;
  TN_INLINE AdadeltaRule(const F* scalar, const UpdateOptions&)
      : lr(scalar[0]), rho(scalar[1]), epsilon(scalar[2]) {}
  TN_INLINE void operator()(F& var, F& accum, F& accum_update, F g) const {
    accum = rho * accum + (F(1) - rho) * g * g;
    const F update = std::sqrt(accum_update + epsilon) / std::sqrt(accum + epsilon) * g;
    accum_update = rho * accum_update + (F(1) - rho) * update * update;
    var -= lr * update;
  }
};

template <class F>
struct AdamRule {
  static constexpr int kSlots = 2;
  static constexpr int kScalars = 6;
  F alpha, beta1, one_minus_beta1, one_minus_beta2, epsilon;
  bool nesterov;
  TN_INLINE AdamRule(const F* scalar, const UpdateOptions& o)
      : alpha(scalar[2] * std::sqrt(F(1) - scalar[1]) / (F(1) - scalar[0])),
        beta1(scalar[3]),
        one_minus_beta1(F(1) - scalar[3]),
        one_minus_beta2(F(1) - scalar[4]),
        epsilon(scalar[5]),
        nesterov(o.nesterov) {}
  TN_INLINE void operator()(F& var, F& m, F& v, F g) const {
    m += (g - m) * one_minus_beta1;
    v += (g * g - v) * one_minus_beta2;
    const F direction = nesterov ? g * one_minus_beta1 + beta1 * m : m;
    var -= direction * alpha / (std::sqrt(v) + epsilon);
  }
};

template <class F>
struct AdaMaxRule {
  static constexpr int kSlots = 2;
  static constexpr int kScalars = 5;
  F alpha, one_minus_beta1, beta2, epsilon;
  TN_INLINE AdaMaxRule(const F* scalar, const UpdateOptions&)
      : alpha(scalar[1] / (F(1) - scalar[0])),
        one_minus_beta1(F(1) - scalar[2]),
        beta2(scalar[3]),
        epsilon(scalar[4]) {}
  TN_INLINE void operator()(F& var, F& m, F& v, F g) const {
    m += (g - m) * one_minus_beta1;
    const F decayed = beta2 * v;
    const F size = std::abs(g);
    v = decayed > size ? decayed : size;
    var -= alpha * (m / (v + epsilon));
  }
};

template <class F>
struct RMSPropRule {
  static constexpr int kSlots = 2;
  static constexpr int kScalars = 4;
  F lr, one_minus_rho, momentum, epsilon;
  TN_INLINE RMSPropRule(const F* scalar, const UpdateOptions&)
      : lr(scalar[0]), one_minus_rho(F(1) - scalar[1]), momentum(scalar[2]), epsilon(scalar[3]) {}
  TN_INLINE void operator()(F& var, F& ms, F& mom, F g) const {
    ms += (g * g - ms) * one_minus_rho;
    mom = momentum * mom + lr * g / std::sqrt(ms + epsilon);
    var -= mom;
  }
};

template <class F>
struct CenteredRMSPropRule {
  static constexpr int kSlots = 3;
  static constexpr int kScalars = 4;
  F lr, one_minus_rho, momentum, epsilon;
  TN_INLINE CenteredRMSPropRule(const F* scalar, const UpdateOptions&)
      : lr(scalar[0]), one_minus_rho(F(1) - scalar[1]), momentum(scalar[2]), epsilon(scalar[3]) {}
  TN_INLINE void operator()(F& var, F& mg, F& ms, F& mom, F g) const {
    ms += (g * g - ms) * one_minus_rho;
    mg += (g - mg) * one_minus_rho;
    mom = momentum * mom + lr * g / std::sqrt(ms - mg * mg + epsilon);
    var -= mom;
  }
};

// lr_power is -1/2 nearly always: that case has a rule of its own, without pow.
template <class F, bool kSquareRoot>
struct FtrlRuleOf {
  static constexpr int kSlots = 2;
  static constexpr int kScalars = 5;
  F lr, l1, l2, l2_shrinkage, minus_power;
  TN_INLINE FtrlRuleOf(const F* scalar, const UpdateOptions&)
      : lr(scalar[0]),
        l1(scalar[1]),
        l2(scalar[2]),
        l2_shrinkage(scalar[3]),
        minus_power(-scalar[4]) {}
  TN_INLINE F power(F x) const {
    if constexpr (kSquareRoot) {
      return std::sqrt(x);
    } else {
      return std::pow(x, minus_power);
    }
  }
  TN_INLINE void operator()(F& var, F& accum, F& linear, F g) const {
    const F grown = accum + g * g;
    const F new_power = power(grown);
    linear += g + F(2) * l2_shrinkage * var - (new_power - power(accum)) / lr * var;
    const F quadratic = new_power / lr + F(2) * l2;
    // Divided whether needed or not: a division under a condition is not made vector code.
    const F moved = (sign_of(linear) * l1 - linear) / quadratic;
    var = std::abs(linear) > l1 ? moved : F(0);
    accum = grown;
  }
};
template <class F>
using FtrlRule = FtrlRuleOf<F, false>;
template <class F>
using FtrlSquareRootRule = FtrlRuleOf<F, true>;

// --- Adam on rows: every row decays and moves, some accumulate a gradient
// ----------------------------------------------- The scalars are Adam's. The first and the last
// read no gradient.

template <class F>
struct AdamDecayRule {
  static constexpr int kSlots = 2;
  F beta1, beta2;
  TN_INLINE AdamDecayRule(const F* scalar, const UpdateOptions&)
      : beta1(scalar[3]), beta2(scalar[4]) {}
  TN_INLINE void operator()(F&, F& m, F& v, F) const {
    m *= beta1;
    v *= beta2;
  }
};

template <class F>
struct AdamAccumulateRule {
  static constexpr int kSlots = 2;
  F one_minus_beta1, one_minus_beta2;
  TN_INLINE AdamAccumulateRule(const F* scalar, const UpdateOptions&)
      : one_minus_beta1(F(1) - scalar[3]), one_minus_beta2(F(1) - scalar[4]) {}
  TN_INLINE void operator()(F&, F& m, F& v, F g) const {
    m += one_minus_beta1 * g;
    v += one_minus_beta2 * g * g;
  }
};

template <class F>
struct AdamMoveRule {
  static constexpr int kSlots = 2;
  F alpha, epsilon;
  TN_INLINE AdamMoveRule(const F* scalar, const UpdateOptions&)
      : alpha(scalar[2] * std::sqrt(F(1) - scalar[1]) / (F(1) - scalar[0])), epsilon(scalar[5]) {}
  TN_INLINE void operator()(F& var, F& m, F& v, F) const {
    var -= alpha * m / (std::sqrt(v) + epsilon);
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

// Those that work on rows of a variable, too. Adam there decays, accumulates and moves,
// three rules one after the other.
#define TN_ROW_UPDATE_RULES(ROW) \
  ROW(ProximalGradientDescent)   \
  ROW(Momentum)                  \
  ROW(Adagrad)                   \
  ROW(ProximalAdagrad)           \
  ROW(Adadelta)                  \
  ROW(RMSProp)                   \
  ROW(CenteredRMSProp)           \
  ROW(Ftrl)                      \
  ROW(AdamAccumulate)
#define TN_UPDATE_RULES(ROW) \
  ROW(GradientDescent)       \
  ROW(Adam)                  \
  ROW(AdaMax)                \
  ROW(FtrlSquareRoot)        \
  TN_ROW_UPDATE_RULES(ROW)   \
  ROW(AdamDecay)             \
  ROW(AdamMove)
