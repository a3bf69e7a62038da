// SPDX-License-Identifier: Apache-2.0
// Optimisers' updates: the formulas are the CPU's (elementwise/training.h). Scalars are read where
// they lie; slots that a formula has not are null.
#include "kernels/cuda/language/math.h"
#include "kernels/elementwise/training.h"

namespace treenail::gpu {

template <class F>
struct Scalars {
  F of[6];
  TN_DEVICE void read(int i, const F* from) { of[i] = from != nullptr ? *from : F(0); }
};

template <class Rule, class F>
TN_DEVICE void update(int64_t n, const Scalars<F>& scalars, const UpdateOptions& options, F* var,
                      F* a, F* b, F* d, const F* g) {
  const Rule rule(scalars.of, options);
  for (int64_t i = first(); i < n; i += stride()) {
    if constexpr (Rule::kSlots == 0) {
      rule(var[i], g[i]);
    } else if constexpr (Rule::kSlots == 1) {
      rule(var[i], a[i], g[i]);
    } else if constexpr (Rule::kSlots == 2) {
      rule(var[i], a[i], b[i], g[i]);
    } else {
      rule(var[i], a[i], b[i], d[i], g[i]);
    }
  }
}

#define TN_UPDATE(name, F)                                                                   \
  TN_KERNEL(update_##name##_##F, int64_t n, UpdateOptions options, const F* s0, const F* s1, \
            const F* s2, const F* s3, const F* s4, const F* s5, F* var, F* a, F* b, F* d,    \
            const F* g) {                                                                    \
    Scalars<F> scalars;                                                                      \
    scalars.read(0, s0);                                                                     \
    scalars.read(1, s1);                                                                     \
    scalars.read(2, s2);                                                                     \
    scalars.read(3, s3);                                                                     \
    scalars.read(4, s4);                                                                     \
    scalars.read(5, s5);                                                                     \
    update<elementwise::name##Rule<F>>(n, scalars, options, var, a, b, d, g);                \
  }
#define TN_RULE(name)    \
  TN_UPDATE(name, float) \
  TN_UPDATE(name, double)
TN_UPDATE_RULES(TN_RULE)

}  // namespace treenail::gpu
