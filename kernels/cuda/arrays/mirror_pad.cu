// SPDX-License-Identifier: Apache-2.0
// Borders that mirror what they surround, by the size of elements, and what of a gradient folds
// back: added in the order of the CPU, rounded to the element's type after each addition.
#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/arrays/mirror_space.h"
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/language/bits.h"

namespace treenail::gpu {

// Where the element at place `at` of the larger axis comes from.
TN_DEVICE int64_t mirrored(const MirrorAxis& axis, int offset, int64_t at) {
  const int64_t inside = at - axis.before;
  if (inside < 0) return -inside - 1 + offset;
  if (inside >= axis.inner.size) return 2 * axis.inner.size - 1 - offset - inside;
  return inside;
}

template <class T>
TN_DEVICE void mirror_pad(const MirrorSpace& s, const T* x, T* y) {
  for (int64_t i = first(); i < s.n; i += stride()) {
    int64_t rest = i, source = 0;
    TN_NO_UNROLL
    for (int d = 0; d < s.rank; ++d) {
      const Divided here = divided(s.axis[d].outer, rest);
      source += mirrored(s.axis[d], s.offset, here.rest) * s.axis[d].inner_stride;
      rest = here.quotient;
    }
    y[i] = x[source];
  }
}

// The places of the larger axis that mirror place `at`: itself, then those in the borders.
struct MirrorSources {
  int64_t place[3];
  int count;
};
TN_DEVICE MirrorSources sources_of(const MirrorAxis& axis, int offset, int64_t at) {
  MirrorSources s = {{axis.before + at, 0, 0}, 1};
  const int64_t left = axis.before - 1 - at + offset;
  if (left >= 0 && left < axis.before) s.place[s.count++] = left;
  const int64_t right = axis.before + 2 * axis.inner.size - 1 - offset - at;
  if (right >= axis.before + axis.inner.size && right < axis.outer.size) s.place[s.count++] = right;
  return s;
}

// Number `t` of the places that fold onto element i, of which there are `count`: the innermost axis
// changes fastest.
struct Folded {
  int64_t place, count;
};
TN_DEVICE Folded folded(const MirrorSpace& s, int64_t i, int64_t t) {
  Folded result = {0, 1};
  TN_NO_UNROLL
  for (int d = 0; d < s.rank; ++d) {
    const MirrorAxis& axis = s.axis[d];
    const Divided here = divided(axis.inner, i);
    const MirrorSources sources = sources_of(axis, s.offset, here.rest);
    const int64_t choice = t % sources.count;
    const int64_t place = choice == 0   ? sources.place[0]
                          : choice == 1 ? sources.place[1]
                                        : sources.place[2];
    result.place += place * axis.outer_stride;
    result.count *= sources.count;
    t /= sources.count;
    i = here.quotient;
  }
  return result;
}

template <class S>
TN_DEVICE S folded_sum(S a, S b) {
  if constexpr (std::is_integral_v<S>) {
    return static_cast<S>(a + b);
  } else {
    return Stored<S>::narrow(Stored<S>::widen(a) + Stored<S>::widen(b));
  }
}

template <class S>
TN_DEVICE void mirror_fold(const MirrorSpace& s, const S* gradient, S* y) {
  for (int64_t i = first(); i < s.n; i += stride()) {
    S sum = {};
    int64_t count = 1;
    for (int64_t t = 0; t < count; ++t) {
      const Folded next = folded(s, i, t);
      count = next.count;
      sum = folded_sum(sum, gradient[next.place]);
    }
    y[i] = sum;
  }
}

#define TN_MIRROR_PAD(bytes, T) \
  TN_KERNEL(mirror_pad_##bytes, MirrorSpace s, const T* x, T* y) { mirror_pad(s, x, y); }
TN_MIRROR_PAD(1, uint8_t)
TN_MIRROR_PAD(2, uint16_t)
TN_MIRROR_PAD(4, uint32_t)
TN_MIRROR_PAD(8, uint64_t)
TN_MIRROR_PAD(16, Bits128)

#define TN_MIRROR_FOLD(S, type)                                           \
  TN_KERNEL(mirror_fold_##type, MirrorSpace s, const S* gradient, S* y) { \
    mirror_fold(s, gradient, y);                                          \
  }
TN_MIRROR_FOLD(float, float32)
TN_MIRROR_FOLD(double, float64)
TN_MIRROR_FOLD(Float16, float16)
TN_MIRROR_FOLD(BFloat16, bfloat16)
TN_MIRROR_FOLD(uint8_t, uint8)
TN_MIRROR_FOLD(uint16_t, uint16)
TN_MIRROR_FOLD(uint32_t, uint32)
TN_MIRROR_FOLD(uint64_t, uint64)

}  // namespace treenail::gpu
