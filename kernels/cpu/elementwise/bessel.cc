// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions by double lanes.
#include "kernels/elementwise/bessel.h"
#include "kernels/cpu/elementwise/through_double.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

constexpr host::TileOp kOps[] = {TN_BESSEL_THROUGH_DOUBLE_OPS(TN_TILE_THROUGH_DOUBLE)
                                     TN_BESSEL_OPS(TN_TILE_UNARY)};

}  // namespace

void register_bessel_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
