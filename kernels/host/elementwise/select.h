// SPDX-License-Identifier: Apache-2.0
// Select moves elements by size: a level library brings loops for 1, 2, 4 and 8 bytes; 16 bytes and
// strings are done here.
#pragma once

#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {

struct SelectLoops {
  Loops bytes1, bytes2, bytes4, bytes8;
};
void add_select_kernels(KernelRegistry& registry, const SelectLoops& loops);

}  // namespace treenail::host
