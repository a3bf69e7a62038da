// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct ColumnScan {
  int64_t outer, extent, inner;
  int32_t exclusive, reverse;
};

}  // namespace treenail::gpu
