// SPDX-License-Identifier: Apache-2.0
// Element-wise loops for the types that gain nothing from ISA levels: u64 and complex numbers. The
// other types: kernels/cpu/. Functions of complex numbers: complex_functions.cc.
#include <complex>
#include <cstdint>

#include "framework/op/op_def.h"
#include "kernels/host/elementwise/arithmetic.h"
#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {
namespace {

using U = uint64_t;
using C = std::complex<float>;
using Z = std::complex<double>;

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct ComplexDiv {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct Quotient {
  static U apply(U a, U b) { return floor_div(a, b); }
};
struct Remainder {
  static U apply(U a, U b) { return floor_mod(a, b); }
};
struct Maximum {
  static U apply(U a, U b) { return a > b ? a : b; }
};
struct Minimum {
  static U apply(U a, U b) { return a < b ? a : b; }
};
struct SquaredDifference {
  static U apply(U a, U b) { return (a - b) * (a - b); }
};
struct Power {
  static U apply(U a, U b) { return integer_power(a, b); }
};
struct And {
  static U apply(U a, U b) { return a & b; }
};
struct Or {
  static U apply(U a, U b) { return a | b; }
};
struct Xor {
  static U apply(U a, U b) { return a ^ b; }
};
struct Invert {
  static U apply(U x) { return ~x; }
};
struct LeftShift {
  static U apply(U x, U by) { return x << (by > 63 ? 63 : by); }
};
struct RightShift {
  static U apply(U x, U by) { return x >> (by > 63 ? 63 : by); }
};
struct DivNoNan {
  template <class T>
  static T apply(T a, T b) {
    return b == T{} ? T{} : a / b;
  }
};
struct MulNoNan {
  template <class T>
  static T apply(T x, T y) {
    return y == T{} ? T{} : x * y;
  }
};
struct Xdivy {
  template <class T>
  static T apply(T x, T y) {
    return x == T{} ? T{} : x / y;
  }
};
struct Square {
  template <class T>
  static T apply(T x) {
    return x * x;
  }
};
struct Identity {
  template <class T>
  static T apply(T x) {
    return x;
  }
};
struct Clamp6 {
  static U apply(U x) { return x > 6 ? 6 : x; }
};
struct ReluGrad {
  static U apply(U g, U x) { return x > 0 ? g : 0; }
};
struct Relu6Grad {
  static U apply(U g, U x) { return x > 0 && x < 6 ? g : 0; }
};
struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  static bool apply(U a, U b) { return a < b; }
};
struct LessEqual {
  static bool apply(U a, U b) { return a <= b; }
};
struct Greater {
  static bool apply(U a, U b) { return a > b; }
};
struct GreaterEqual {
  static bool apply(U a, U b) { return a >= b; }
};
void approximate_equal(void* y, const void* a, const void* b, const void*, int64_t n,
                       const LoopParams& params) {
  const auto* p = static_cast<const U*>(a);
  const auto* q = static_cast<const U*>(b);
  auto* r = static_cast<bool*>(y);
  for (int64_t i = 0; i < n; ++i) {
    r[i] = static_cast<double>(p[i] < q[i] ? q[i] - p[i] : p[i] - q[i]) < params.value[0];
  }
}
void read_tolerance(const OpInstance& op, LoopParams& params) {
  params.value[0] = op.get_float("tolerance");
}

void clip(void* y, const void* t, const void* low, const void* high, int64_t n, const LoopParams&) {
  const auto* x = static_cast<const U*>(t);
  const auto* l = static_cast<const U*>(low);
  const auto* h = static_cast<const U*>(high);
  auto* r = static_cast<U*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const U raised = x[i] < l[i] ? l[i] : x[i];
    r[i] = raised > h[i] ? h[i] : raised;
  }
}

constexpr DType kU = DType::kUInt64;
constexpr DType kC = DType::kComplex64;
constexpr DType kZ = DType::kComplex128;

constexpr TileOp kU64[] = {
    {"Add", kU, each_binary<Add, U>(), 0.2f},
    {"Sub", kU, each_binary<Sub, U>(), 0.2f},
    {"Mul", kU, each_binary<Mul, U>(), 0.4f},
    {"Div", kU, each_binary<Quotient, U>(), 3.0f},
    {"TruncateDiv", kU, each_binary<Quotient, U>(), 3.0f},
    {"FloorDiv", kU, each_binary<Quotient, U>(), 3.0f},
    {"FloorMod", kU, each_binary<Remainder, U>(), 3.0f},
    {"Mod", kU, each_binary<Remainder, U>(), 3.0f},
    {"TruncateMod", kU, each_binary<Remainder, U>(), 3.0f},
    {"Maximum", kU, each_binary<Maximum, U>(), 0.3f},
    {"Minimum", kU, each_binary<Minimum, U>(), 0.3f},
    {"SquaredDifference", kU, each_binary<SquaredDifference, U>(), 0.4f},
    {"Pow", kU, each_binary<Power, U>(), 6.0f},
    {"Square", kU, each_unary<Square, U>(), 0.4f},
    {"BitwiseAnd", kU, each_binary<And, U>(), 0.2f},
    {"BitwiseOr", kU, each_binary<Or, U>(), 0.2f},
    {"BitwiseXor", kU, each_binary<Xor, U>(), 0.2f},
    {"Invert", kU, each_unary<Invert, U>(), 0.2f},
    {"LeftShift", kU, each_binary<LeftShift, U>(), 0.3f},
    {"RightShift", kU, each_binary<RightShift, U>(), 0.3f},
    {"Relu", kU, each_unary<Identity, U>(), 0.1f},
    {"Relu6", kU, each_unary<Clamp6, U>(), 0.2f},
    {"ReluGrad", kU, each_binary<ReluGrad, U>(), 0.3f},
    {"Relu6Grad", kU, each_binary<Relu6Grad, U>(), 0.4f},
    {"Equal", kU, each_binary<Equal, U, bool>(), 0.2f},
    {"NotEqual", kU, each_binary<NotEqual, U, bool>(), 0.2f},
    {"Less", kU, each_binary<Less, U, bool>(), 0.2f},
    {"LessEqual", kU, each_binary<LessEqual, U, bool>(), 0.2f},
    {"Greater", kU, each_binary<Greater, U, bool>(), 0.2f},
    {"GreaterEqual", kU, each_binary<GreaterEqual, U, bool>(), 0.2f},
    {"ApproximateEqual", kU, {{approximate_equal}}, 0.5f, read_tolerance},
    {"ClipByValue", kU, {{clip}}, 0.5f},
};

constexpr TileOp kComplex[] = {
    {"Add", kC, each_binary<Add, C>(), 0.3f},
    {"Add", kZ, each_binary<Add, Z>(), 0.5f},
    {"Sub", kC, each_binary<Sub, C>(), 0.3f},
    {"Sub", kZ, each_binary<Sub, Z>(), 0.5f},
    {"Mul", kC, each_binary<Mul, C>(), 1.5f},
    {"Mul", kZ, each_binary<Mul, Z>(), 1.5f},
    {"Div", kC, each_binary<ComplexDiv, C>(), 8.0f},
    {"Div", kZ, each_binary<ComplexDiv, Z>(), 10.0f},
    {"RealDiv", kC, each_binary<ComplexDiv, C>(), 8.0f},
    {"RealDiv", kZ, each_binary<ComplexDiv, Z>(), 10.0f},
    {"DivNoNan", kC, each_binary<DivNoNan, C>(), 8.0f},
    {"DivNoNan", kZ, each_binary<DivNoNan, Z>(), 10.0f},
    {"MulNoNan", kC, each_binary<MulNoNan, C>(), 1.5f},
    {"MulNoNan", kZ, each_binary<MulNoNan, Z>(), 1.5f},
    {"QuotientGrad", kC, each_binary<Xdivy, C>(), 8.0f},
    {"QuotientGrad", kZ, each_binary<Xdivy, Z>(), 10.0f},
    {"Xdivy", kC, each_binary<Xdivy, C>(), 8.0f},
    {"Xdivy", kZ, each_binary<Xdivy, Z>(), 10.0f},
    {"Square", kC, each_unary<Square, C>(), 1.5f},
    {"Square", kZ, each_unary<Square, Z>(), 1.5f},
    {"Equal", kC, each_binary<Equal, C, bool>(), 0.5f},
    {"Equal", kZ, each_binary<Equal, Z, bool>(), 0.5f},
    {"NotEqual", kC, each_binary<NotEqual, C, bool>(), 0.5f},
    {"NotEqual", kZ, each_binary<NotEqual, Z, bool>(), 0.5f},
};

}  // namespace

void register_elementwise_kernels(KernelRegistry& registry) {
  add_tile_ops(registry, kU64);
  add_tile_ops(registry, kComplex);
}

}  // namespace treenail::host
