// SPDX-License-Identifier: Apache-2.0
// Clipping between two bounds; Select by the size of elements.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/selection.h"

namespace treenail::gpu {

TN_CLIP_OPS(TN_TERNARY_KERNEL)

struct Choose {
  template <class T>
  TN_DEVICE T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};
struct alignas(16) Bits128 {
  uint64_t half[2];
};
#define TN_SELECT(bytes, T)                                                                 \
  TN_KERNEL(Select_##bytes, int64_t n, const bool* condition, const T* a, const T* b, T* y, \
            double, Broadcast how) {                                                        \
    map(n, how, Choose(), y, condition, a, b);                                              \
  }

TN_SELECT(1, uint8_t)
TN_SELECT(2, uint16_t)
TN_SELECT(4, uint32_t)
TN_SELECT(8, uint64_t)
TN_SELECT(16, Bits128)

}  // namespace treenail::gpu
