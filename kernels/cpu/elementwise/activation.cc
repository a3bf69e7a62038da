// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients by the level's vectors. Those of double that need more
// than exp: host/elementwise/libm.cc.
#include "kernels/elementwise/activation.h"
#include "framework/op/op_def.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

// Attribute `approximate` chooses between two loops.
template <class Accurate, class Approximate>
void gelu_loop(void* y, const void* a, const void*, const void*, int64_t n,
               const LoopParams& params) {
  auto* r = static_cast<float*>(y);
  const auto* x = static_cast<const float*>(a);
  if (params.value[0] != 0) {
    run_unary<Approximate>(r, x, n);
  } else {
    run_unary<Accurate>(r, x, n);
  }
}
template <class Accurate, class Approximate>
void gelu_grad_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                    const LoopParams& params) {
  constexpr int64_t kL = kLanes<float>;
  auto* r = static_cast<float*>(y);
  const auto* g = static_cast<const float*>(a);
  const auto* x = static_cast<const float*>(b);
  if (params.value[0] != 0) {
    run_binary<Approximate>(r, g, kL, x, kL, n);
  } else {
    run_binary<Accurate>(r, g, kL, x, kL, n);
  }
}
template <class Accurate, class Approximate>
constexpr Loops gelu_loops() {
  return {{gelu_loop<Accurate, Approximate>}, either_unary_forms<Accurate, Approximate, float>()};
}
template <class Accurate, class Approximate>
constexpr Loops gelu_grad_loops() {
  return {{gelu_grad_loop<Accurate, Approximate>},
          either_binary_forms<Accurate, Approximate, float>()};
}
void read_approximate(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_bool("approximate") ? 1 : 0;
}

template <class T>
void leaky_relu_loop(void* y, const void* a, const void*, const void*, int64_t n,
                     const LoopParams& params) {
  const T alpha = static_cast<T>(params.value[0]);
  run_blocks(static_cast<T*>(y), static_cast<const T*>(a), n,
             [alpha](T x) { return LeakyRelu::apply(x, alpha); });
}
template <class T>
void leaky_relu_grad_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                          const LoopParams& params) {
  const T alpha = static_cast<T>(params.value[0]);
  run_blocks(static_cast<T*>(y), static_cast<const T*>(a), kBlock, static_cast<const T*>(b), kBlock,
             n, [alpha](T g, T x) { return LeakyReluGrad::apply(g, x, alpha); });
}
template <class T>
constexpr Loops leaky_relu_loops() {
  return {{leaky_relu_loop<T>}, unary_forms<LeakyRelu, T>()};
}
template <class T>
constexpr Loops leaky_relu_grad_loops() {
  return {{leaky_relu_grad_loop<T>}, binary_forms<LeakyReluGrad, T>()};
}
void read_alpha(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_float("alpha");
}

#define TN_LEAKY_UNARY(op, Definition, T, ns) \
  {#op, dtype_of<T>, leaky_relu_loops<T>(), ns, read_alpha},
#define TN_LEAKY_BINARY(op, Definition, T, ns) \
  {#op, dtype_of<T>, leaky_relu_grad_loops<T>(), ns, read_alpha},
#define TN_GELU_UNARY(op, Accurate, Approximate, T, ns) \
  {#op, dtype_of<T>, gelu_loops<Accurate, Approximate>(), ns, read_approximate},
#define TN_GELU_BINARY(op, Accurate, Approximate, T, ns) \
  {#op, dtype_of<T>, gelu_grad_loops<Accurate, Approximate>(), ns, read_approximate},

constexpr host::TileOp kOps[] = {TN_ACTIVATION_UNARY_OPS(TN_TILE_UNARY)
                                     TN_ACTIVATION_BINARY_OPS(TN_TILE_BINARY)
                                         TN_LEAKY_RELU_OPS(TN_LEAKY_UNARY, TN_LEAKY_BINARY)
                                             TN_GELU_OPS(TN_GELU_UNARY, TN_GELU_BINARY)};

}  // namespace

void register_activation_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
