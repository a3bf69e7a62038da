// SPDX-License-Identifier: Apache-2.0
// The definitions of element-wise ops as a GPU computes them, one number at a time with fused
// multiply-adds, against the level's vectors: the same bits wherever the level has fused
// multiply-adds too, and at all levels for ops that IEEE 754 or integers define to the bit.
#define TN_GPU
#define TN_DEVICE inline

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "framework/eager/execute.h"
#include "framework/runtime/kernel/kernel_library.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/half.h"
#include "kernels/elementwise/activation.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/bessel.h"
#include "kernels/elementwise/bitwise.h"
#include "kernels/elementwise/comparison.h"
#include "kernels/elementwise/gamma.h"
#include "kernels/elementwise/half.h"
#include "kernels/elementwise/quantiles.h"
#include "kernels/elementwise/selection.h"
#include "kernels/elementwise/through_double.h"
#include "kernels/elementwise/transcendental.h"
#include "kernels/elementwise/unary.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail {
namespace {

using gpu::elementwise::narrow;
using gpu::elementwise::widen;
using host::LoopParams;

constexpr size_t kSpecial = 64, kRandom = 4096;

template <class T>
T of_random_bits(std::mt19937_64& random) {
  const uint64_t bits = random();
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Of what T has, then numbers of moderate size, then random bits.
template <class T>
std::vector<T> numbers(unsigned seed) {
  using L = std::numeric_limits<T>;
  std::mt19937_64 random(seed);
  std::vector<T> x = {T(0), T(1), T(-1), T(2), T(3), T(-7), L::min(), L::max(), L::lowest()};
  if constexpr (std::is_floating_point_v<T>) {
    for (const T special :
         {T(-0.0),      L::infinity(), -L::infinity(), L::quiet_NaN(), L::denorm_min(), T(-1e-40),
          L::epsilon(), T(0.5),        T(-0.5),        T(0.85),        T(1.5),          T(2.5),
          T(-1.9375),   T(8),          T(87.5),        T(-87.5),       T(-103.9),       T(88.75),
          T(709),       T(1e5),        T(2e6),         T(8388607.5),   T(1e30)}) {
      x.push_back(special);
    }
  }
  std::uniform_real_distribution<double> moderate(-20, 20);
  while (x.size() < kSpecial) x.push_back(static_cast<T>(moderate(random)));
  for (size_t i = 0; i < kRandom; ++i) x.push_back(static_cast<T>(moderate(random)));
  for (size_t i = 0; i < kRandom; ++i) x.push_back(of_random_bits<T>(random));
  return x;
}

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return true;  // its payload is the machine's
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}

class ElementwiseScalarsTest : public ::testing::Test {
 protected:
  // Opens the level's library, which brings the loops.
  void SetUp() override { execute("Neg", std::vector<Tensor>{Tensor::scalar(1.0f)}); }

  static bool is_fused() {
    return kernel_level_in_use() != "x86-64" && kernel_level_in_use() != "x86-64-v2";
  }

  // `f` of each element is what the op's loop makes of all.
  template <class T, class F, class... Operand>
  void expect_same(std::string_view op, F f, const LoopParams& params, const Operand&... x) {
    using R = decltype(f(x[0]...));
    const host::TileOp* tile = host::find_tile_op(op, dtype_of<T>);
    ASSERT_NE(tile, nullptr) << op;
    const size_t n = std::min({x.size()...});
    const auto y = std::make_unique<R[]>(n);
    const void* operands[3] = {x.data()...};
    tile->loops.variants[0](y.get(), operands[0], operands[1], operands[2], static_cast<int64_t>(n),
                            params);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(same(R(f(x[i]...)), y[i]))
          << op << " of " << dtype_name(dtype_of<T>) << "("
          << ::testing::PrintToString(std::tuple(x[i]...)) << "): " << +f(x[i]...) << " alone, "
          << +y[i] << " in a vector";
    }
  }
  template <class T, class F>
  void unary(std::string_view op, F f, const LoopParams& params = {}) {
    expect_same<T>(op, f, params, numbers<T>(1));
  }
  // All pairs of special numbers, and pairs of the others.
  template <class T, class F>
  void binary(std::string_view op, F f, const LoopParams& params = {}) {
    std::vector<T> a = numbers<T>(1), b = numbers<T>(2);
    for (size_t i = 0; i < kSpecial; ++i) {
      for (size_t j = 0; j < kSpecial; ++j) a.push_back(a[i]), b.push_back(b[j]);
    }
    expect_same<T>(op, f, params, a, b);
  }
};

#define TN_UNARY(op, Op, T, ns) unary<T>(#op, [](T x) { return gpu::elementwise::Op::apply(x); });
#define TN_BINARY(op, Op, T, ns) \
  binary<T>(#op, [](T x, T y) { return gpu::elementwise::Op::apply(x, y); });

TEST_F(ElementwiseScalarsTest, ExactOps){TN_ARITHMETIC_OPS(TN_BINARY) TN_UNARY_OPS(TN_UNARY)
                                             TN_BITWISE_BINARY_OPS(TN_BINARY)
                                                 TN_BITWISE_UNARY_OPS(TN_UNARY)}

TEST_F(ElementwiseScalarsTest, Shifts) {
#define TN_SHIFT(op, Op, T, ns)                                                                 \
  binary<T>(#op,                                                                                \
            [](T x, T by) { return gpu::elementwise::Op::apply(x, by, T(8 * sizeof(T) - 1)); }, \
            {{8 * sizeof(T) - 1.0}});
  TN_SHIFT_OPS(TN_SHIFT)
}

TEST_F(ElementwiseScalarsTest, Comparisons) {
  TN_COMPARISON_OPS(TN_BINARY)
  TN_QUESTION_OPS(TN_UNARY)
#define TN_SWAPPED(op, Op, T, ns) \
  binary<T>(                      \
      #op, [](T x, T y) { return gpu::elementwise::Swapped<gpu::elementwise::Op>::apply(x, y); });
  TN_SWAPPED_COMPARISON_OPS(TN_SWAPPED)
#define TN_APPROXIMATE(op, Op, T, ns) \
  binary<T>(#op, [](T x, T y) { return gpu::elementwise::Op::apply(x, y, 2.5); }, {{2.5}});
  TN_APPROXIMATE_OPS(TN_APPROXIMATE)
}

TEST_F(ElementwiseScalarsTest, Clipping) {
#define TN_CLIP(op, Op, T, ns)                                                               \
  expect_same<T>(                                                                            \
      #op, [](T t, T low, T high) { return gpu::elementwise::Op::apply(t, low, high); }, {}, \
      numbers<T>(1), numbers<T>(2), numbers<T>(3));
  TN_CLIP_OPS(TN_CLIP)
}

TEST_F(ElementwiseScalarsTest, OpsWithMultiplyAdds) {
  if (!is_fused()) GTEST_SKIP() << "level " << kernel_level_in_use() << " rounds twice";
  TN_ACTIVATION_UNARY_OPS(TN_UNARY)
  TN_ACTIVATION_BINARY_OPS(TN_BINARY)
#define TN_TRANSCENDENTAL(op, Op, T, ns)                                        \
  if (std::string_view(#op) != "Erf" || kernel_level_in_use() != "x86-64-v4") { \
    TN_UNARY(op, Op, T, ns)                                                     \
  }  // AVX-512 has a table of its own for erf
  TN_TRANSCENDENTAL_UNARY_OPS(TN_TRANSCENDENTAL)
  TN_TRANSCENDENTAL_BINARY_OPS(TN_BINARY)
  TN_BESSEL_OPS(TN_UNARY)
  TN_GAMMA_OPS(TN_UNARY)
  TN_QUANTILE_OPS(TN_UNARY)
}

TEST_F(ElementwiseScalarsTest, OpsWithAValue) {
  if (!is_fused()) GTEST_SKIP() << "level " << kernel_level_in_use() << " rounds twice";
#define TN_ALPHA_UNARY(op, Op, T, ns) \
  unary<T>(#op, [](T x) { return gpu::elementwise::Op::apply(x, T(0.3)); }, {{0.3}});
#define TN_ALPHA_BINARY(op, Op, T, ns) \
  binary<T>(#op, [](T g, T x) { return gpu::elementwise::Op::apply(g, x, T(0.3)); }, {{0.3}});
  TN_LEAKY_RELU_OPS(TN_ALPHA_UNARY, TN_ALPHA_BINARY)
#define TN_EITHER_UNARY(op, Accurate, Approximate, T, ns)                         \
  unary<T>(#op, [](T x) { return gpu::elementwise::Accurate::apply(x); }, {{0}}); \
  unary<T>(#op, [](T x) { return gpu::elementwise::Approximate::apply(x); }, {{1}});
#define TN_EITHER_BINARY(op, Accurate, Approximate, T, ns)                                 \
  binary<T>(#op, [](T g, T x) { return gpu::elementwise::Accurate::apply(g, x); }, {{0}}); \
  binary<T>(#op, [](T g, T x) { return gpu::elementwise::Approximate::apply(g, x); }, {{1}});
  TN_GELU_OPS(TN_EITHER_UNARY, TN_EITHER_BINARY)
}

// But for the sines of large numbers, which are a library's.
TEST_F(ElementwiseScalarsTest, OpsThroughDouble) {
  if (!is_fused()) GTEST_SKIP() << "level " << kernel_level_in_use() << " rounds twice";
#define TN_THROUGH_DOUBLE(op, Op, T, ns) \
  through_double(#op, [](T x) { return narrow(gpu::elementwise::Op::apply(widen(x))); });
  const auto through_double = [this](std::string_view op, auto f) {
    std::vector<float> x = numbers<float>(1);
    if (op == "Sin" || op == "Cos" || op == "Tan") {
      std::erase_if(x,
                    [](float v) { return std::fabs(v) > static_cast<float>(gpu::kMostRadians); });
    }
    expect_same<float>(op, f, {}, x);
  };
  TN_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE)
  TN_BESSEL_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE)
  TN_GAMMA_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE)
  TN_QUANTILE_THROUGH_DOUBLE_OPS(TN_THROUGH_DOUBLE)
#define TN_SINE(op, Op, T, ns)                                       \
  through_double(#op, [](T x) {                                      \
    const bool is_small = std::fabs(x) <= gpu::kMostFloatRadians;    \
    return is_small ? gpu::elementwise::Op::apply(x)                 \
                    : narrow(gpu::elementwise::Op::apply(widen(x))); \
  });
  TN_SINE_OPS(TN_SINE)
#define TN_POWER(op, Op, T, ns) \
  binary<T>(#op, [](T x, T y) { return narrow(gpu::elementwise::power(widen(x), widen(y))); });
  TN_POWER_OPS(TN_POWER)
}

TEST(GpuHalfTest, ToFloatIsTheReference) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float a = gpu::to_float(gpu::Float16{half}), b = half_bits_to_float(half);
    ASSERT_EQ(gpu::float_bits(a), gpu::float_bits(b)) << half;
    const float c = gpu::to_float(gpu::BFloat16{half}), d = bfloat16_bits_to_float(half);
    ASSERT_EQ(gpu::float_bits(c), gpu::float_bits(d)) << half;
  }
}

TEST(GpuHalfTest, FromFloatIsTheReference) {
  constexpr uint32_t kStep = 251;  // a prime, so that all low bits come up
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const float x = gpu::float_of_bits(static_cast<uint32_t>(bits));
    ASSERT_EQ(gpu::to_float16(x).bits, float_to_half_bits(x)) << bits;
    ASSERT_EQ(gpu::to_bfloat16(x).bits, float_to_bfloat16_bits(x)) << bits;
  }
}

}  // namespace
}  // namespace treenail
