// SPDX-License-Identifier: Apache-2.0
// Cast between all types of real numbers, and truth values: Cast_<from>_<to>.
#include "kernels/cuda/elementwise/cast.h"
#include "kernels/cuda/elementwise/cast_types.h"

namespace treenail::gpu {

#define TN_CAST_KERNEL(From, from, To, to)                                 \
  TN_KERNEL(Cast_##from##_##to, int64_t n, const From* a, To* y, double) { \
    map(n, contiguous(), CastTo<To>(), y, a);                              \
  }

TN_CASTS(TN_CAST_KERNEL)

}  // namespace treenail::gpu
