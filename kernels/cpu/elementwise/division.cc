// SPDX-License-Identifier: Apache-2.0
// Integer division, remainders and integer powers, element by element: they have errors, or take
// library functions.
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/arithmetic.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

struct TruncateDiv {
  template <class T>
  static T apply(T a, T b) {
    return host::truncate_div(a, b);
  }
};
struct FloorDiv {
  template <class T>
  static T apply(T a, T b) {
    return host::floor_div(a, b);
  }
};
struct FloorMod {
  template <class T>
  static T apply(T a, T b) {
    return host::floor_mod(a, b);
  }
};
struct TruncateMod {
  template <class T>
  static T apply(T a, T b) {
    return host::truncate_mod(a, b);
  }
};
struct IntegerPower {
  template <class T>
  static T apply(T a, T b) {
    return host::integer_power(a, b);
  }
};

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

constexpr host::TileOp kOps[] = {
    {"Div", kI, each_binary<TruncateDiv, int32_t>(), 2.0f},
    {"Div", kL, each_binary<TruncateDiv, int64_t>(), 3.0f},
    {"TruncateDiv", kF, each_binary<TruncateDiv, float>(), 0.5f},
    {"TruncateDiv", kD, each_binary<TruncateDiv, double>(), 1.0f},
    {"TruncateDiv", kI, each_binary<TruncateDiv, int32_t>(), 2.0f},
    {"TruncateDiv", kL, each_binary<TruncateDiv, int64_t>(), 3.0f},
    {"FloorDiv", kF, each_binary<FloorDiv, float>(), 0.5f},
    {"FloorDiv", kD, each_binary<FloorDiv, double>(), 1.0f},
    {"FloorDiv", kI, each_binary<FloorDiv, int32_t>(), 2.5f},
    {"FloorDiv", kL, each_binary<FloorDiv, int64_t>(), 4.0f},
    {"FloorMod", kF, each_binary<FloorMod, float>(), 8.0f},
    {"FloorMod", kD, each_binary<FloorMod, double>(), 8.0f},
    {"FloorMod", kI, each_binary<FloorMod, int32_t>(), 2.5f},
    {"FloorMod", kL, each_binary<FloorMod, int64_t>(), 4.0f},
    {"Mod", kF, each_binary<TruncateMod, float>(), 8.0f},
    {"Mod", kD, each_binary<TruncateMod, double>(), 8.0f},
    {"Mod", kI, each_binary<TruncateMod, int32_t>(), 2.0f},
    {"Mod", kL, each_binary<TruncateMod, int64_t>(), 3.0f},
    {"TruncateMod", kF, each_binary<TruncateMod, float>(), 8.0f},
    {"TruncateMod", kD, each_binary<TruncateMod, double>(), 8.0f},
    {"TruncateMod", kI, each_binary<TruncateMod, int32_t>(), 2.0f},
    {"TruncateMod", kL, each_binary<TruncateMod, int64_t>(), 3.0f},
    {"Pow", kI, each_binary<IntegerPower, int32_t>(), 5.0f},
    {"Pow", kL, each_binary<IntegerPower, int64_t>(), 6.0f},
};

}  // namespace

void register_division_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
