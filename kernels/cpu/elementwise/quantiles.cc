// SPDX-License-Identifier: Apache-2.0
// Inverses of the error function and of the normal distribution, by double lanes.
#include "kernels/elementwise/quantiles.h"
#include "kernels/cpu/elementwise/through_double.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

constexpr host::TileOp kOps[] = {TN_QUANTILE_THROUGH_DOUBLE_OPS(TN_TILE_THROUGH_DOUBLE)
                                     TN_QUANTILE_OPS(TN_TILE_UNARY)};

}  // namespace

void register_quantiles_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
