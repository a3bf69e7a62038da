// SPDX-License-Identifier: Apache-2.0
// Sums of rows that are divided at the end: half types in float, rounded once.
#include <cmath>

#include "kernels/cuda/indexing/merger.h"

namespace treenail::gpu {

// Integers in 64 bits: a count need not fit into them.
struct MergeMean : MergeAdd {
  template <class C>
  TN_DEVICE static C finish(C sum, int64_t count) {
    using Signed = std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>;
    using Wide = std::conditional_t<std::is_floating_point_v<C>, C, Signed>;
    return static_cast<C>(static_cast<Wide>(sum) / static_cast<Wide>(count));
  }
};
struct MergeSqrtN : MergeAdd {
  template <class C>
  TN_DEVICE static C finish(C sum, int64_t count) {
    return sum / std::sqrt(static_cast<C>(count));
  }
};

TN_MEANS(TN_MERGE)

}  // namespace treenail::gpu
