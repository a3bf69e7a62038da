// SPDX-License-Identifier: Apache-2.0
// Cast as a program of conversions, with the loops for u64, complex numbers and clamping; Bitcast.
// The other conversions are the level libraries' (kernels/cpu/elementwise/conversion.cc).
#include "kernels/host/elementwise/cast.h"
#include "framework/tensor/truth_values.h"

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/fusion.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {
namespace {

template <class To>
struct Plain {
  template <class From>
  static To apply(From x) {
    return static_cast<To>(x);
  }
};
struct RealPart {
  template <class T>
  static T apply(std::complex<T> x) {
    return x.real();
  }
};
struct ToBool {
  template <class T>
  static bool apply(T x) {
    return x != T{};
  }
};
// Toward zero; beyond the range its nearest end, NaN 0.
struct SaturatedU64 {
  template <class F>
  static uint64_t apply(F x) {
    if (!(x > 0)) return 0;
    return x >= F(18446744073709551616.0) ? std::numeric_limits<uint64_t>::max()
                                          : static_cast<uint64_t>(x);
  }
};

template <class T>
void clamp_loop(void* y, const void* a, const void*, const void*, int64_t n,
                const LoopParams& params) {
  const auto low = static_cast<T>(params.value[0]), high = static_cast<T>(params.value[1]);
  const auto* p = static_cast<const T*>(a);
  auto* r = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const T raised = p[i] < low ? low : p[i];
    r[i] = raised > high ? high : raised;
  }
}

using C = std::complex<float>;
using Z = std::complex<double>;
constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;
constexpr DType kU = DType::kUInt64;
constexpr DType kC = DType::kComplex64;
constexpr DType kZ = DType::kComplex128;
constexpr DType kB = DType::kBool;

constexpr Conversion kConversions[] = {
    {kU, kL, each_unary_loop<Plain<int64_t>, uint64_t, int64_t>, 0.1f},
    {kL, kU, each_unary_loop<Plain<uint64_t>, int64_t, uint64_t>, 0.1f},
    {kU, kF, each_unary_loop<Plain<float>, uint64_t, float>, 1.0f},
    {kU, kD, each_unary_loop<Plain<double>, uint64_t, double>, 1.0f},
    {kF, kU, each_unary_loop<SaturatedU64, float, uint64_t>, 1.5f},
    {kD, kU, each_unary_loop<SaturatedU64, double, uint64_t>, 1.5f},
    {kU, kB, each_unary_loop<ToBool, uint64_t, bool>, 0.2f},
    {kC, kF, each_unary_loop<RealPart, C, float>, 0.3f},
    {kZ, kD, each_unary_loop<RealPart, Z, double>, 0.3f},
    {kF, kC, each_unary_loop<Plain<C>, float, C>, 0.3f},
    {kD, kZ, each_unary_loop<Plain<Z>, double, Z>, 0.5f},
    {kC, kZ, each_unary_loop<Plain<Z>, C, Z>, 0.5f},
    {kZ, kC, each_unary_loop<Plain<C>, Z, C>, 0.5f},
    {kC, kB, each_unary_loop<ToBool, C, bool>, 0.5f},
    {kZ, kB, each_unary_loop<ToBool, Z, bool>, 0.5f},
};

template <class T>
constexpr LoopParams range_of() {
  return {{static_cast<double>(std::numeric_limits<T>::min()),
           static_cast<double>(std::numeric_limits<T>::max())}};
}

// Limits an int32 or int64 register to the range of the narrower type `to`.
int add_clamp(TileProgram& program, int reg, DType to) {
  const DType wide = program.dtype(reg);
  const Loops loops = {{clamp_loop_for(wide)}};
  const int operands[] = {reg};
  return program.add_step(loops, operands, wide, 0.1f, clamp_params(to));
}

// Between real compute types, or from one to half or bfloat16.
int add_real_cast(TileProgram& program, int reg, DType to) {
  const DType from = program.dtype(reg);
  if (to == DType::kFloat16 || to == DType::kBFloat16) {
    // Integers that float cannot hold would be rounded twice on the way to bfloat16; in half they
    // overflow anyway.
    const bool by_double = from == kD || (to == DType::kBFloat16 && from != kF);
    return program.add_conversion(program.add_conversion(reg, by_double ? kD : kF), to);
  }
  const DType compute = compute_type(to);
  const bool between_i32_and_u64 = (from == kI && compute == kU) || (from == kU && compute == kI);
  reg =
      program.add_conversion(between_i32_and_u64 ? program.add_conversion(reg, kL) : reg, compute);
  if (compute == to) return reg;
  if (is_floating(from)) reg = add_clamp(program, reg, to);
  return program.add_conversion(reg, to);
}

std::unique_ptr<Kernel> copy_kernel(int64_t bytes) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  return make_kernel(
      [bytes](RunContext& c) {
        const auto* from = static_cast<const std::byte*>(c.input(0).raw());
        auto* to = static_cast<std::byte*>(c.output(0).raw());
        if (from == to || bytes == 0) return;
        c.parallel_for(bytes, kPiece, 0.05, [=](int64_t begin, int64_t end) {
          std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
        });
      },
      0.05 * static_cast<double>(bytes));
}

int64_t output_bytes(const PrepareContext& c) {
  return c.output_shape(0).num_elements() * static_cast<int64_t>(dtype_size(c.output_type(0)));
}

int add_cast_steps(TileProgram& program, const OpInstance& op, std::span<const int> operands) {
  return add_cast(program, operands[0], op.output_type(0));
}

bool changes_type(const OpInstance& op) { return op.input_type(0) != op.output_type(0); }

std::unique_ptr<Kernel> prepare_cast(const PrepareContext& c) {
  if (c.input_type(0) == c.output_type(0)) return copy_kernel(output_bytes(c));
  TileProgram program;
  add_cast(program, program.add_input(c.input_type(0)), c.output_type(0));
  const Shape* shape = &c.input_shape(0);
  return make_tile_kernel(program, {&shape, 1}, c.output_shape(0));
}

std::unique_ptr<Kernel> prepare_bitcast(const PrepareContext& c) {
  const int64_t bytes = output_bytes(c);
  if (c.output_type(0) != kB || c.input_type(0) == kB) return copy_kernel(bytes);
  return make_kernel(
      [bytes](RunContext& c) {
        if (bytes == 0) return;
        const void* from = c.input(0).raw();
        void* to = c.output(0).raw();
        if (from != to) std::memcpy(to, from, static_cast<size_t>(bytes));
        make_truth_values(to, static_cast<size_t>(bytes));
      },
      0.1 * static_cast<double>(bytes));
}

}  // namespace

LoopFn clamp_loop_for(DType compute) {
  return compute == kI ? clamp_loop<int32_t> : clamp_loop<int64_t>;
}

LoopParams clamp_params(DType narrow) {
  switch (narrow) {
    case DType::kInt8:
      return range_of<int8_t>();
    case DType::kUInt8:
      return range_of<uint8_t>();
    case DType::kInt16:
      return range_of<int16_t>();
    case DType::kUInt16:
      return range_of<uint16_t>();
    default:
      return range_of<uint32_t>();
  }
}

int add_cast(TileProgram& program, int reg, DType to) {
  const DType from = program.dtype(reg);
  if (from == to) return reg;
  if (is_complex(from)) {
    if (is_complex(to) || to == kB) return program.add_conversion(reg, to);
    reg = program.add_conversion(reg, from == kC ? kF : kD);
    return add_cast(program, reg, to);
  }
  if (is_complex(to)) {
    reg = add_cast(program, reg, to == kC ? kF : kD);
    return program.add_conversion(reg, to);
  }
  reg = program.add_conversion(reg, from == kB ? kI : compute_type(from));
  return to == kB ? program.add_conversion(reg, kB) : add_real_cast(program, reg, to);
}

void register_cast_kernels(KernelRegistry& registry) {
  add_conversions(kConversions);
  registry.add("Cast", {}, prepare_cast);
  add_fusible_op("Cast", changes_type, add_cast_steps);
  registry.add("Bitcast", {}, prepare_bitcast);
}

}  // namespace treenail::host
