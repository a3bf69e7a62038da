// SPDX-License-Identifier: Apache-2.0
// Clipping between two bounds. Select goes by the size of elements and has no definition here.
#pragma once

#include "kernels/elementwise/definition.h"

namespace treenail::TN_SIDE::elementwise {
namespace {

// min(max(t, low), high); NaN stays NaN.
struct Clip {
  template <class V>
  TN_INLINE static V apply(V t, V low, V high) {
    return lesser_of(high, greater_of(low, t));
  }
};

}  // namespace
}  // namespace treenail::TN_SIDE::elementwise

#define TN_CLIP_OPS(ROW)                 \
  ROW(ClipByValue, Clip, float, 0.08f)   \
  ROW(ClipByValue, Clip, double, 0.15f)  \
  ROW(ClipByValue, Clip, int32_t, 0.08f) \
  ROW(ClipByValue, Clip, int64_t, 0.15f)
