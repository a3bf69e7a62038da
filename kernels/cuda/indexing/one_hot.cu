// SPDX-License-Identifier: Apache-2.0
// Elements that are one of two values by where they stand: OneHot, and the bands of matrices.
#include "kernels/cuda/language/bits.h"
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

// indices [prefix, suffix], y [prefix, depth, suffix].
template <class T, class Index>
TN_DEVICE void one_hot(int64_t n, int64_t depth, int64_t suffix, const Index* indices, const T* on,
                       const T* off, T* y) {
  for (int64_t i = first(); i < n; i += stride()) {
    const int64_t above = i / suffix,
                  at = static_cast<int64_t>(indices[above / depth * suffix + i % suffix]);
    y[i] = at == above % depth ? *on : *off;
  }
}

// What is further than `lower` below the diagonal, or `upper` above it, is zero; negative: nothing
// is.
template <class T>
TN_DEVICE void band_part(int64_t n, int64_t rows, int64_t columns, int64_t lower, int64_t upper,
                         const T* x, T* y) {
  for (int64_t i = first(); i < n; i += stride()) {
    const int64_t above = i % columns - i / columns % rows;
    const bool inside = (lower < 0 || -above <= lower) && (upper < 0 || above <= upper);
    y[i] = inside ? x[i] : T{};
  }
}

#define TN_ONE_HOT(bytes, T, Index, index)                                       \
  TN_KERNEL(one_hot_##bytes##_##index, int64_t n, int64_t depth, int64_t suffix, \
            const Index* indices, const T* on, const T* off, T* y) {             \
    one_hot(n, depth, suffix, indices, on, off, y);                              \
  }
#define TN_BY_PLACE(bytes, T)                                                           \
  TN_ONE_HOT(bytes, T, uint8_t, uint8)                                                  \
  TN_ONE_HOT(bytes, T, int32_t, int32)                                                  \
  TN_ONE_HOT(bytes, T, int64_t, int64)                                                  \
  TN_KERNEL(band_part_##bytes, int64_t n, int64_t rows, int64_t columns, int64_t lower, \
            int64_t upper, const T* x, T* y) {                                          \
    band_part(n, rows, columns, lower, upper, x, y);                                    \
  }
TN_BY_PLACE(1, uint8_t)
TN_BY_PLACE(2, uint16_t)
TN_BY_PLACE(4, uint32_t)
TN_BY_PLACE(8, uint64_t)
TN_BY_PLACE(16, Bits128)

}  // namespace treenail::gpu
