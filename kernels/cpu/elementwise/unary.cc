// SPDX-License-Identifier: Apache-2.0
// Algebraic functions of one operand by the level's vectors.
#include "kernels/elementwise/unary.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

constexpr host::TileOp kOps[] = {TN_UNARY_OPS(TN_TILE_UNARY)};

}  // namespace

void register_unary_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
