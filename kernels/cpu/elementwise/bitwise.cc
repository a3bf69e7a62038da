// SPDX-License-Identifier: Apache-2.0
// Operations on the bits of integers, by the level's vectors.
#include "kernels/elementwise/bitwise.h"

#include <bit>
#include <type_traits>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

void read_most(const OpInstance& op, LoopParams& params) {
  params.value[0] = static_cast<double>(8 * dtype_size(op.input_type(0))) - 1;
}

template <class Op, class T, unsigned kMask>
void shift_loop(void* y, const void* a, const void* b, const void*, int64_t n,
                const LoopParams& params) {
  const T most = static_cast<T>(params.value[0]);
  const auto f = [most](T x, T by) __attribute__((always_inline)) {
    return Op::apply(x, by, most);
  };
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  auto* r = static_cast<T*>(y);
  if constexpr (kMask == 2) {
    run_blocks(r, p, kBlock, BlockOfCopies<T>(b, n).element, 0, n, f);
  } else {
    run_blocks(r, p, kBlock, q, kBlock, n, f);
  }
}
template <class Op, class T>
constexpr Loops shift() {
  return {{shift_loop<Op, T, 0>, nullptr, shift_loop<Op, T, 2>}, binary_forms<Op, T>()};
}

// Its result is a byte for elements of any width, which no tile has.
template <class T>
void count_bits(RunContext& c, int64_t n) {
  const T* x = c.input(0).data<T>();
  uint8_t* y = c.output(0).data<uint8_t>();
  c.parallel_for(n, 16384, 0.3, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x[i])));
    }
  });
}
std::unique_ptr<Kernel> prepare_population_count(const PrepareContext& c) {
  const int64_t n = c.input_shape(0).num_elements();
  const DType dtype = c.input_type(0);
  return make_kernel(
      [=](RunContext& run) {
        dispatch<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(
            dtype, [&]<class T>() { count_bits<T>(run, n); });
      },
      static_cast<double>(n) * 0.3);
}

#define TN_SHIFT(op, Definition, T, ns) {#op, dtype_of<T>, shift<Definition, T>(), ns, read_most},

constexpr host::TileOp kOps[] = {TN_BITWISE_BINARY_OPS(TN_TILE_BINARY)
                                     TN_BITWISE_UNARY_OPS(TN_TILE_UNARY) TN_SHIFT_OPS(TN_SHIFT)};

}  // namespace

void register_bitwise_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
  registry.add("PopulationCount", {}, prepare_population_count);
}

}  // namespace treenail::cpu
