// SPDX-License-Identifier: Apache-2.0
// params [batch, outer, extent, inner], indices [batch, count], result [batch, outer, count,
// inner].
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct GatherSpace {
  int64_t batch, outer, extent, inner, count;
};

}  // namespace treenail::gpu
