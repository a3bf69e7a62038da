// SPDX-License-Identifier: Apache-2.0
// What recurrent layers of both kinds do for all their steps at once.
#include "kernels/cuda/language/fault.h"
#include "kernels/cuda/recurrent/units.h"

namespace treenail::gpu {

TN_KERNEL(layer_steps, const int64_t* steps, int64_t time, unsigned long long* fault) {
  if (first() == 0) checked(*steps, time + 1, 0, fault);
}

template <class S>
TN_DEVICE void beside(const BesideRows& b) {
  const int64_t width = b.input + b.cell;
  const int64_t rows = b.time * b.batch, computed = *b.steps * b.batch;
  const auto* const x = static_cast<const S*>(b.x);
  for (int64_t i = first(); i < rows * width; i += stride()) {
    const int64_t row = i / width, column = i - row * width, unit = column - b.input;
    if (unit >= 0 && b.h_prev == nullptr) continue;
    S value = Stored<S>::narrow(0);
    if (row < computed) {
      value = unit < 0        ? x[row * b.input + column]
              : row < b.batch ? static_cast<const S*>(b.h_prev)[row * b.cell + unit]
                              : static_cast<const S*>(b.h)[(row - b.batch) * b.cell + unit];
    }
    static_cast<S*>(b.to)[i] = value;
  }
}

// y = a + b; zeros where no step is computed and they are asked for.
template <class S>
TN_DEVICE void sum_parts(int64_t n, const int64_t* steps, const void* a, const void* b, void* y) {
  using C = Computed<S>;
  const bool nothing = steps != nullptr && *steps <= 0;
  for (int64_t i = first(); i < n; i += stride())
    write<S>(y, i, nothing ? C(0) : read<C>(a, i) + read<C>(b, i));
}

#define TN_LAYER(S, type)                                                                    \
  TN_KERNEL(layer_beside_##type, BesideRows b) { beside<S>(b); }                             \
  TN_KERNEL(layer_sum_##type, int64_t n, const int64_t* steps, const void* a, const void* b, \
            void* y) {                                                                       \
    sum_parts<S>(n, steps, a, b, y);                                                         \
  }
TN_LAYER(float, float32)
TN_LAYER(double, float64)
TN_LAYER(Float16, float16)
TN_LAYER(BFloat16, bfloat16)

}  // namespace treenail::gpu
