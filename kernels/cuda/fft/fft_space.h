// SPDX-License-Identifier: Apache-2.0
// A batch of boxes that are cropped and padded with zeros at their ends, as host and device code
// see it.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct FftSpace {
  int64_t batch = 1;
  int64_t given[3] = {1, 1, 1};
  int64_t wanted[3] = {1, 1, 1};
};

}  // namespace treenail::gpu
