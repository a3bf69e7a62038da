// SPDX-License-Identifier: Apache-2.0
// Optimisers' updates of rows of variables, those of one row in their order; and the steps of Adam
// that go over all rows. Where an index is at fault nothing changes.
#include "kernels/cuda/indexing/run.h"
#include "kernels/cuda/language/fault.h"
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/training/rule_step.h"

namespace treenail::gpu {

template <class Rule, class S>
TN_DEVICE void update_rows(const RowRuns& r, int64_t width, const void* keys,
                           const uint32_t* positions, const Scalars<S>& scalars,
                           const UpdateOptions& options, const State<S>& state, const S* g) {
  const Rule rule(scalars.of, options);
  const int64_t groups = threads() / r.lanes, step = static_cast<int64_t>(blocks_y()) * r.lanes;
  for (int64_t slot = block() * groups + group_of(r.lanes); slot < r.n; slot += blocks() * groups) {
    const Run run = run_from(r, keys, slot, r.n);
    if (run.begin == run.end) continue;
    for (int64_t c = static_cast<int64_t>(block_y()) * r.lanes + lane_of(r.lanes); c < width;
         c += step) {
      for (int64_t at = run.begin; at < run.end; ++at)
        state.step_at(rule, run.row * width + c, g[positions[at] * width + c]);
    }
  }
}

#define TN_UPDATE_ROWS(name, S, type)                                                              \
  TN_KERNEL(update_rows_##name##_##type, RowRuns r, int64_t width, const void* keys,               \
            const uint32_t* positions, const unsigned long long* fault, UpdateOptions options,     \
            const S* s0, const S* s1, const S* s2, const S* s3, const S* s4, const S* s5, S* var,  \
            S* a, S* b, S* d, const S* g) {                                                        \
    if (faulty(fault)) return;                                                                     \
    Scalars<S> scalars;                                                                            \
    scalars.read(s0, s1, s2, s3, s4, s5);                                                          \
    const State<S> state = {var, a, b, d};                                                         \
    update_rows<elementwise::name##Rule<Computed<S>>>(r, width, keys, positions, scalars, options, \
                                                      state, g);                                   \
  }
#define TN_RULE(name) TN_RULE_TYPES(TN_UPDATE_ROWS, name)
TN_ROW_UPDATE_RULES(TN_RULE)

// Of formulas that read no gradient.
template <class Rule, class S>
TN_DEVICE void sweep(int64_t n, const Scalars<S>& scalars, const State<S>& state) {
  const Rule rule(scalars.of, UpdateOptions());
  for (int64_t i = first(); i < n; i += stride()) state.step_at(rule, i, S());
}

#define TN_SWEEP(name, S, type)                                                                    \
  TN_KERNEL(sweep_##name##_##type, int64_t n, const unsigned long long* fault, const S* s0,        \
            const S* s1, const S* s2, const S* s3, const S* s4, const S* s5, S* var, S* a, S* b) { \
    if (faulty(fault)) return;                                                                     \
    Scalars<S> scalars;                                                                            \
    scalars.read(s0, s1, s2, s3, s4, s5);                                                          \
    const State<S> state = {var, a, b, nullptr};                                                   \
    sweep<elementwise::name##Rule<Computed<S>>>(n, scalars, state);                                \
  }
TN_RULE_TYPES(TN_SWEEP, AdamDecay)
TN_RULE_TYPES(TN_SWEEP, AdamMove)

}  // namespace treenail::gpu
