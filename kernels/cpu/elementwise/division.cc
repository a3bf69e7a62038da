// SPDX-License-Identifier: Apache-2.0
// Integer division, remainders and integer powers, element by element.
#include "kernels/elementwise/division.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/arithmetic.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

#define TN_CHECKED(function)       \
  struct function {                \
    template <class T>             \
    static T apply(T a, T b) {     \
      return host::function(a, b); \
    }                              \
  };
TN_CHECKED(truncate_div)
TN_CHECKED(floor_div)
TN_CHECKED(floor_mod)
TN_CHECKED(truncate_mod)
TN_CHECKED(integer_power)
#undef TN_CHECKED

#define TN_DIVISION(op, function, T, ns) {#op, dtype_of<T>, each_binary<function, T>(), ns},

constexpr host::TileOp kOps[] = {TN_INTEGER_DIVISION_OPS(TN_DIVISION) TN_INTEGER_POWER_OPS(
    TN_DIVISION) TN_FLOAT_DIVISION_OPS(TN_DIVISION)};

}  // namespace

void register_division_kernels(KernelRegistry& registry) { host::add_tile_ops(registry, kOps); }

}  // namespace treenail::cpu
