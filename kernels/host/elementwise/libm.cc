// SPDX-License-Identifier: Apache-2.0
// Functions of real numbers that the C library computes.
#include "framework/op/op_def.h"
#include "kernels/elementwise/library.h"
#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/tile_loops.h"
#include "kernels/host/special/lgamma.h"

namespace treenail::host {
namespace {

using namespace cpu::library;

struct Lgamma {
  static double apply(double x) { return lgamma_of(x); }
};

void gelu(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams& params) {
  const auto* p = static_cast<const double*>(a);
  auto* r = static_cast<double*>(y);
  const bool approximate = params.value[0] != 0;
  for (int64_t i = 0; i < n; ++i) r[i] = Gelu::apply(p[i], approximate);
}

void gelu_grad(void* y, const void* a, const void* b, const void*, int64_t n,
               const LoopParams& params) {
  const auto* g = static_cast<const double*>(a);
  const auto* x = static_cast<const double*>(b);
  auto* r = static_cast<double*>(y);
  const bool approximate = params.value[0] != 0;
  for (int64_t i = 0; i < n; ++i) r[i] = GeluGrad::apply(g[i], x[i], approximate);
}
void read_approximate(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_bool("approximate") ? 1 : 0;
}

#define TN_UNARY(op, Definition, T, ns) {#op, dtype_of<T>, each_unary<Definition, T>(), ns},
#define TN_BINARY(op, Definition, T, ns) {#op, dtype_of<T>, each_binary<Definition, T>(), ns},
#define TN_GELU_UNARY(op, Definition, T, ns) {#op, dtype_of<T>, {{gelu}}, ns, read_approximate},
#define TN_GELU_BINARY(op, Definition, T, ns) \
  {#op, dtype_of<T>, {{gelu_grad}}, ns, read_approximate},

constexpr TileOp kOps[] = {TN_LIBRARY_UNARY_OPS(TN_UNARY) TN_LIBRARY_BINARY_OPS(
    TN_BINARY) TN_LIBRARY_LGAMMA_OPS(TN_UNARY) TN_LIBRARY_GELU_OPS(TN_GELU_UNARY, TN_GELU_BINARY)};

}  // namespace

void register_libm_kernels(KernelRegistry& registry) { add_tile_ops(registry, kOps); }

}  // namespace treenail::host
