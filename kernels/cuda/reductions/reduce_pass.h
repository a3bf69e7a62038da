// SPDX-License-Identifier: Apache-2.0
// One pass of a reduction, as host and device code see it: an array [outer, extent, inner] becomes
// [outer, chunks, inner], `chunk` elements of the middle axis each.
#pragma once

#include <cstdint>

namespace treenail::gpu {

enum class Finish : int32_t { kNone, kDivide, kRoot, kHalve };

struct ReducePass {
  int64_t outer = 1, extent = 0, inner = 1;
  int64_t chunk = 1, chunks = 1;
  int32_t lanes = 1;              // threads for a row, where inner is 1
  int32_t mapped = 0;             // elements have been through the map: a later pass
  Finish finish = Finish::kNone;  // of the last pass
  double divisor = 1;
};

}  // namespace treenail::gpu
