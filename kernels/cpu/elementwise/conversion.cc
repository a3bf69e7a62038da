// SPDX-License-Identifier: Apache-2.0
// Changes of type by the level's vectors: half-width types to and from the type they are computed
// in, and between compute types. Which steps a Cast takes: host/elementwise/cast.cc. u64 and
// complex: host/cast_loops.cc.
#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/cpu/elementwise/loops.h"
#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

// The same branch-free arithmetic as half.h's reference, which the compiler can vectorise.
TN_INLINE float half_to_float(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu;
  // The exponent moved into place and corrected by 2^112: right for normal and denormal halves
  // alike.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special |
                              static_cast<uint32_t>(h & 0x8000u) << 16);
}

TN_INLINE uint16_t float_to_half(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x), magnitude = u & 0x7fffffffu;
  // Denormal halves: adding 0.5 rounds at 2^-24, their unit.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                            std::bit_cast<uint32_t>(0.5f);
  // Normal ones: the exponent rebased, rounded to even by adding just less than half a unit and the
  // last bit.
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t h = magnitude < 0x38800000u ? denormal : normal;
  h = magnitude >= 0x47800000u ? 0x7c00u : h;
  h = magnitude > 0x7f800000u ? 0x7e00u : h;
  return static_cast<uint16_t>(h | (u >> 16 & 0x8000u));
}

TN_INLINE float bfloat16_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}
TN_INLINE uint16_t float_to_bfloat16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

// A double as the float toward zero from it, its last bit set where that is not exact: rounding
// this once more to fewer bits gives what rounding the double would have given.
TN_INLINE float to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const uint32_t u = std::bit_cast<uint32_t>(nearest);
  const double back = static_cast<double>(nearest);
  const double size = back < 0 ? -back : back, wanted = x < 0 ? -x : x;
  const uint32_t truncated = size > wanted ? u - 1u : u;
  const bool exact = (size == wanted) | (x != x);
  return std::bit_cast<float>(exact ? u : truncated | 1u);
}

// Toward zero; beyond the range its nearest end, NaN 0.
template <class I, class F>
TN_INLINE I saturated(F x) {
  constexpr F kEnd = sizeof(I) == 4 ? F(2147483648.0) : F(9223372036854775808.0);
  const bool inside = (x >= -kEnd) & (x < kEnd);
  const I y = static_cast<I>(inside ? x : F(0));
  const I high = x >= kEnd ? std::numeric_limits<I>::max() : y;
  return x < -kEnd ? std::numeric_limits<I>::min() : high;
}

struct HalfToFloat {
  TN_INLINE static float apply(uint16_t x) { return half_to_float(x); }
};
struct FloatToHalf {
  TN_INLINE static uint16_t apply(float x) { return float_to_half(x); }
};
struct BFloat16ToFloat {
  TN_INLINE static float apply(uint16_t x) { return bfloat16_to_float(x); }
};
struct FloatToBFloat16 {
  TN_INLINE static uint16_t apply(float x) { return float_to_bfloat16(x); }
};
struct DoubleToHalf {
  TN_INLINE static uint16_t apply(double x) { return float_to_half(to_odd(x)); }
};
struct DoubleToBFloat16 {
  TN_INLINE static uint16_t apply(double x) { return float_to_bfloat16(to_odd(x)); }
};
template <class To>
struct Plain {  // exact, to nearest, or modulo 2^bits, as the types have it
  template <class From>
  TN_INLINE static To apply(From x) {
    return static_cast<To>(x);
  }
};
template <class To>
struct Saturated {
  template <class From>
  TN_INLINE static To apply(From x) {
    return saturated<To>(x);
  }
};
struct ToBool {
  template <class From>
  TN_INLINE static bool apply(From x) {
    return x != From{};
  }
};

#if defined(__F16C__)
// The machine's instruction, for the last elements too: it keeps some bits of a NaN that the
// arithmetic above does not.
template <class From, class To, class F>
TN_INLINE void by_eights(To* y, const From* a, int64_t n, F f) {
  for (; n >= 8; n -= 8, a += 8, y += 8) f(y, a);
  if (n > 0) {
    From in[8] = {};
    To out[8];
    std::memcpy(in, a, static_cast<size_t>(n) * sizeof(From));
    f(out, in);
    std::memcpy(y, out, static_cast<size_t>(n) * sizeof(To));
  }
}
void half_to_float_loop(void* y, const void* a, const void*, const void*, int64_t n,
                        const LoopParams&) {
  by_eights(static_cast<float*>(y), static_cast<const uint16_t*>(a), n,
            [](float* to, const uint16_t* from) {
              _mm256_storeu_ps(
                  to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
            });
}
void float_to_half_loop(void* y, const void* a, const void*, const void*, int64_t n,
                        const LoopParams&) {
  by_eights(static_cast<uint16_t*>(y), static_cast<const float*>(a), n,
            [](uint16_t* to, const float* from) {
              const __m128i half =
                  _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
              _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
            });
}
#else
constexpr LoopFn half_to_float_loop = block_unary_loop<HalfToFloat, uint16_t, float>;
constexpr LoopFn float_to_half_loop = block_unary_loop<FloatToHalf, float, uint16_t>;
#endif

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

template <class Op, class From, class To>
constexpr LoopFn loop() {
  return block_unary_loop<Op, From, To>;
}

constexpr host::Conversion kConversions[] = {
    {DType::kFloat16, kF, half_to_float_loop, 0.1f},
    {kF, DType::kFloat16, float_to_half_loop, 0.1f},
    {kD, DType::kFloat16, loop<DoubleToHalf, double, uint16_t>(), 1.0f},
    {DType::kBFloat16, kF, loop<BFloat16ToFloat, uint16_t, float>(), 0.06f},
    {kF, DType::kBFloat16, loop<FloatToBFloat16, float, uint16_t>(), 0.1f},
    {kD, DType::kBFloat16, loop<DoubleToBFloat16, double, uint16_t>(), 1.0f},
    {DType::kInt8, kI, loop<Plain<int32_t>, int8_t, int32_t>(), 0.06f},
    {DType::kUInt8, kI, loop<Plain<int32_t>, uint8_t, int32_t>(), 0.06f},
    {DType::kInt16, kI, loop<Plain<int32_t>, int16_t, int32_t>(), 0.06f},
    {DType::kUInt16, kI, loop<Plain<int32_t>, uint16_t, int32_t>(), 0.06f},
    {DType::kUInt32, kL, loop<Plain<int64_t>, uint32_t, int64_t>(), 0.1f},
    {kI, DType::kInt8, loop<Plain<int8_t>, int32_t, int8_t>(), 0.06f},
    {kI, DType::kUInt8, loop<Plain<uint8_t>, int32_t, uint8_t>(), 0.06f},
    {kI, DType::kInt16, loop<Plain<int16_t>, int32_t, int16_t>(), 0.06f},
    {kI, DType::kUInt16, loop<Plain<uint16_t>, int32_t, uint16_t>(), 0.06f},
    {kL, DType::kUInt32, loop<Plain<uint32_t>, int64_t, uint32_t>(), 0.1f},
    {kI, kL, loop<Plain<int64_t>, int32_t, int64_t>(), 0.1f},
    {kL, kI, loop<Plain<int32_t>, int64_t, int32_t>(), 0.1f},
    {kF, kD, loop<Plain<double>, float, double>(), 0.1f},
    {kD, kF, loop<Plain<float>, double, float>(), 0.1f},
    {kI, kF, loop<Plain<float>, int32_t, float>(), 0.06f},
    {kI, kD, loop<Plain<double>, int32_t, double>(), 0.1f},
    {kL, kF, loop<Plain<float>, int64_t, float>(), 0.5f},
    {kL, kD, loop<Plain<double>, int64_t, double>(), 0.5f},
    {kF, kI, loop<Saturated<int32_t>, float, int32_t>(), 0.1f},
    {kF, kL, loop<Saturated<int64_t>, float, int64_t>(), 0.5f},
    {kD, kI, loop<Saturated<int32_t>, double, int32_t>(), 0.2f},
    {kD, kL, loop<Saturated<int64_t>, double, int64_t>(), 0.5f},
    {kF, DType::kBool, loop<ToBool, float, bool>(), 0.06f},
    {kD, DType::kBool, loop<ToBool, double, bool>(), 0.1f},
    {kI, DType::kBool, loop<ToBool, int32_t, bool>(), 0.06f},
    {kL, DType::kBool, loop<ToBool, int64_t, bool>(), 0.1f},
    {DType::kBool, kI, loop<Plain<int32_t>, uint8_t, int32_t>(), 0.06f},
};

}  // namespace

void register_conversion_kernels(KernelRegistry&) { host::add_conversions(kConversions); }

}  // namespace treenail::cpu
