// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two operands, by the level's vectors: f32, f64, i32, i64. Half-width types come
// here through the tile engine's conversions; u64 and complex are in host/.
#include "kernels/elementwise/arithmetic.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

constexpr host::TileOp kOps[] = {TN_ARITHMETIC_OPS(TN_TILE_BINARY)};

}  // namespace

void register_arithmetic_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
