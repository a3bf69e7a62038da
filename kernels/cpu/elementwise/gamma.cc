// SPDX-License-Identifier: Apache-2.0
// Logarithm of the gamma function, and the digamma function, by double lanes.
#include "kernels/elementwise/gamma.h"
#include "kernels/cpu/elementwise/through_double.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

constexpr host::TileOp kOps[] = {TN_GAMMA_THROUGH_DOUBLE_OPS(TN_TILE_THROUGH_DOUBLE)
                                     TN_GAMMA_OPS(TN_TILE_UNARY)};

}  // namespace

void register_gamma_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
