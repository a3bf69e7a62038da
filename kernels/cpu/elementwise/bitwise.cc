// SPDX-License-Identifier: Apache-2.0
// Operations on the bits of integers, by the level's vectors. Narrow types come here as wider ones
// through the tile engine, so a shift is told the width of its own type.
#include <bit>
#include <type_traits>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

struct Commutative {
  static constexpr Tail kTail = Tail::kScalar;
  static constexpr bool kCommutes = true;
};

struct And : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a & b;
  }
};
struct Or : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a | b;
  }
};
struct Xor : Commutative {
  template <class V>
  TN_INLINE static V apply(V a, V b) {
    return a ^ b;
  }
};
struct Invert {
  static constexpr Tail kTail = Tail::kScalar;
  template <class V>
  TN_INLINE static V apply(V x) {
    return ~x;
  }
};

// `most`: one less than the bits of the type, the longest shift.
struct LeftShift {
  static constexpr bool kTakesValue = true;
  template <class V>
  TN_INLINE static V apply(V x, V by, V most) {
    const V places = lesser_of(most, greater_of(V{}, by));
    return (V)((Unsigned<V>)x << (Unsigned<V>)places);
  }
};
struct RightShift {
  static constexpr bool kTakesValue = true;
  template <class V>
  TN_INLINE static V apply(V x, V by, V most) {
    return x >> lesser_of(most, greater_of(V{}, by));
  }
};
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

constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

constexpr host::TileOp kOps[] = {
    {"BitwiseAnd", kI, binary<And, int32_t>(), 0.05f},
    {"BitwiseAnd", kL, binary<And, int64_t>(), 0.1f},
    {"BitwiseOr", kI, binary<Or, int32_t>(), 0.05f},
    {"BitwiseOr", kL, binary<Or, int64_t>(), 0.1f},
    {"BitwiseXor", kI, binary<Xor, int32_t>(), 0.05f},
    {"BitwiseXor", kL, binary<Xor, int64_t>(), 0.1f},
    {"Invert", kI, unary<Invert, int32_t>(), 0.05f},
    {"Invert", kL, unary<Invert, int64_t>(), 0.1f},
    {"LeftShift", kI, shift<LeftShift, int32_t>(), 0.1f, read_most},
    {"LeftShift", kL, shift<LeftShift, int64_t>(), 0.2f, read_most},
    {"RightShift", kI, shift<RightShift, int32_t>(), 0.1f, read_most},
    {"RightShift", kL, shift<RightShift, int64_t>(), 0.2f, read_most},
};

}  // namespace

void register_bitwise_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
  registry.add("PopulationCount", {}, prepare_population_count);
}

}  // namespace treenail::cpu
