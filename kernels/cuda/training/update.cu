// SPDX-License-Identifier: Apache-2.0
// Optimisers' updates of whole variables: the formulas are the CPU's.
#include "kernels/cuda/training/rule_step.h"

namespace treenail::gpu {

template <class Rule, class S>
TN_DEVICE void update(int64_t n, const Scalars<S>& scalars, const UpdateOptions& options,
                      const State<S>& state, const S* g) {
  const Rule rule(scalars.of, options);
  for (int64_t i = first(); i < n; i += stride()) state.step_at(rule, i, g[i]);
}

#define TN_UPDATE(name, S, type)                                                                \
  TN_KERNEL(update_##name##_##type, int64_t n, UpdateOptions options, const S* s0, const S* s1, \
            const S* s2, const S* s3, const S* s4, const S* s5, S* var, S* a, S* b, S* d,       \
            const S* g) {                                                                       \
    Scalars<S> scalars;                                                                         \
    scalars.read(s0, s1, s2, s3, s4, s5);                                                       \
    const State<S> state = {var, a, b, d};                                                      \
    update<elementwise::name##Rule<Computed<S>>>(n, scalars, options, state, g);                \
  }
#define TN_RULE(name) TN_RULE_TYPES(TN_UPDATE, name)
TN_UPDATE_RULES(TN_RULE)

}  // namespace treenail::gpu
