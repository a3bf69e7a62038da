// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, tanh, sigmoid and erf by the level's vectors. Float functions that go
// through double: through_double.cc; those of the C library: host/elementwise/libm.cc.
#include "kernels/elementwise/transcendental.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

constexpr host::TileOp kOps[] = {TN_TRANSCENDENTAL_UNARY_OPS(TN_TILE_UNARY)
                                     TN_TRANSCENDENTAL_BINARY_OPS(TN_TILE_BINARY)};

}  // namespace

void register_transcendental_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
}

}  // namespace treenail::cpu
