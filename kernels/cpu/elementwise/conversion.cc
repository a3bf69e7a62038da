// SPDX-License-Identifier: Apache-2.0
// Changes of type by the level's vectors: half-width types to and from the type they are computed
// in, and between compute types. Which steps a Cast takes: host/elementwise/cast.cc. u64 and
// complex: host/elementwise/cast.cc.
#include "kernels/elementwise/conversion.h"

#include <bit>
#include <type_traits>

#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

// Of 16-bit elements each in 32 bits, a number or a vector of them alike.
template <class U>
using FloatOf = std::conditional_t<is_vec<U>, VecF, float>;
template <class U>
TN_INLINE U word(uint32_t x) {
  if constexpr (is_vec<U>) {
    return U{} + x;
  } else {
    return x;
  }
}

// The same branch-free arithmetic as half.h's reference, which the compiler can vectorise.
template <class U>
TN_INLINE FloatOf<U> half_to_float(U h) {
  const U magnitude = h & 0x7fffu;
  // The exponent moved into place and corrected by 2^112: right for normal and denormal halves
  // alike.
  const FloatOf<U> scaled = bits<FloatOf<U>>(U(magnitude << 13)) * 0x1p112f;
  const U special = magnitude >= word<U>(0x7c00u) ? word<U>(0x7f800000u) : word<U>(0);
  return bits<FloatOf<U>>(U(bits<U>(scaled) | special | (h & 0x8000u) << 16));
}

template <class U>
TN_INLINE U float_to_half(FloatOf<U> x) {
  const U u = bits<U>(x), magnitude = u & 0x7fffffffu;
  // Denormal halves: adding 0.5 rounds at 2^-24, their unit.
  const FloatOf<U> half = bits<FloatOf<U>>(word<U>(std::bit_cast<uint32_t>(0.5f)));
  const U denormal = bits<U>(FloatOf<U>(bits<FloatOf<U>>(magnitude) + half)) - bits<U>(half);
  // Normal ones: the exponent rebased, rounded to even by adding just less than half a unit and the
  // last bit.
  const U normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  U h = magnitude < word<U>(0x38800000u) ? denormal : normal;
  h = magnitude >= word<U>(0x47800000u) ? word<U>(0x7c00u) : h;
  h = magnitude > word<U>(0x7f800000u) ? word<U>(0x7e00u) : h;
  return h | (u >> 16 & 0x8000u);
}

template <class U>
TN_INLINE FloatOf<U> bfloat16_to_float(U b) {
  return bits<FloatOf<U>>(U(b << 16));
}
template <class U>
TN_INLINE U float_to_bfloat16(FloatOf<U> x) {
  const U u = bits<U>(x);
  const U rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return (u & 0x7fffffffu) > word<U>(0x7f800000u) ? (u >> 16 | 0x40u) : rounded;
}

// On elements as they are stored, and on lanes that hold them.
using VecU = Vec<uint32_t>;
#if defined(__AVX512F__)
// Under a mask of all: the header's functions without one start from something uninitialised.
constexpr __mmask16 kAll = 0xffff;
#endif
struct HalfToFloat {
  TN_INLINE static float apply(uint16_t x) { return half_to_float<uint32_t>(x); }
  TN_INLINE static VecF apply(VecU x) {
#if defined(__AVX512F__)
    return (VecF)_mm512_maskz_cvtph_ps(kAll, _mm512_maskz_cvtepi32_epi16(kAll, (__m512i)x));
#elif defined(__F16C__)
    const __m128i low = _mm256_castsi256_si128((__m256i)x);
    return (VecF)_mm256_cvtph_ps(_mm_packus_epi32(low, _mm256_extracti128_si256((__m256i)x, 1)));
#else
    return half_to_float(x);
#endif
  }
};
struct FloatToHalf {
  TN_INLINE static uint16_t apply(float x) {
    return static_cast<uint16_t>(float_to_half<uint32_t>(x));
  }
  TN_INLINE static VecU apply(VecF x) {
#if defined(__AVX512F__)
    return (VecU)_mm512_maskz_cvtepu16_epi32(
        kAll, _mm512_maskz_cvtps_ph(kAll, (__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    return (VecU)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
    return float_to_half<VecU>(x);
#endif
  }
};
struct BFloat16ToFloat {
  TN_INLINE static float apply(uint16_t x) { return bfloat16_to_float<uint32_t>(x); }
  TN_INLINE static VecF apply(VecU x) { return bfloat16_to_float(x); }
};
struct FloatToBFloat16 {
  TN_INLINE static uint16_t apply(float x) {
    return static_cast<uint16_t>(float_to_bfloat16<uint32_t>(x));
  }
  TN_INLINE static VecU apply(VecF x) { return float_to_bfloat16<VecU>(x); }
};
struct DoubleToHalf {
  TN_INLINE static uint16_t apply(double x) { return FloatToHalf::apply(to_odd(x)); }
};
struct DoubleToBFloat16 {
  TN_INLINE static uint16_t apply(double x) { return FloatToBFloat16::apply(to_odd(x)); }
};
// Lanes hold narrow integers by value, and truth values as ones or zeros.
struct Same {
  template <class V>
  TN_INLINE static V apply(V x) {
    return x;
  }
};
template <int kBits, bool kSigned>
struct LowBits {
  template <class V>
  TN_INLINE static V apply(V x) {
    using U = Unsigned<V>;
    constexpr int kShift = static_cast<int>(sizeof(ElementOf<V>)) * 8 - kBits;
    const U high = (U)x << kShift;
    if constexpr (kSigned) {
      return (V)high >> kShift;
    } else {
      return (V)(high >> kShift);
    }
  }
};
struct TruthToOne {
  TN_INLINE static VecI apply(VecI x) { return x & 1; }
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
    {DType::kFloat16, kF, half_to_float_loop, 0.1f, unary_forms<HalfToFloat, uint32_t>()},
    {kF, DType::kFloat16, float_to_half_loop, 0.1f, unary_forms<FloatToHalf, float>()},
    {kD, DType::kFloat16, loop<DoubleToHalf, double, uint16_t>(), 1.0f},
    {DType::kBFloat16, kF, loop<BFloat16ToFloat, uint16_t, float>(), 0.06f,
     unary_forms<BFloat16ToFloat, uint32_t>()},
    {kF, DType::kBFloat16, loop<FloatToBFloat16, float, uint16_t>(), 0.1f,
     unary_forms<FloatToBFloat16, float>()},
    {kD, DType::kBFloat16, loop<DoubleToBFloat16, double, uint16_t>(), 1.0f},
    {DType::kInt8, kI, loop<Plain<int32_t>, int8_t, int32_t>(), 0.06f,
     unary_forms<Same, int32_t>()},
    {DType::kUInt8, kI, loop<Plain<int32_t>, uint8_t, int32_t>(), 0.06f,
     unary_forms<Same, int32_t>()},
    {DType::kInt16, kI, loop<Plain<int32_t>, int16_t, int32_t>(), 0.06f,
     unary_forms<Same, int32_t>()},
    {DType::kUInt16, kI, loop<Plain<int32_t>, uint16_t, int32_t>(), 0.06f,
     unary_forms<Same, int32_t>()},
    {DType::kUInt32, kL, loop<Plain<int64_t>, uint32_t, int64_t>(), 0.1f,
     unary_forms<Same, int64_t>()},
    {kI, DType::kInt8, loop<Plain<int8_t>, int32_t, int8_t>(), 0.06f,
     unary_forms<LowBits<8, true>, int32_t>()},
    {kI, DType::kUInt8, loop<Plain<uint8_t>, int32_t, uint8_t>(), 0.06f,
     unary_forms<LowBits<8, false>, int32_t>()},
    {kI, DType::kInt16, loop<Plain<int16_t>, int32_t, int16_t>(), 0.06f,
     unary_forms<LowBits<16, true>, int32_t>()},
    {kI, DType::kUInt16, loop<Plain<uint16_t>, int32_t, uint16_t>(), 0.06f,
     unary_forms<LowBits<16, false>, int32_t>()},
    {kL, DType::kUInt32, loop<Plain<uint32_t>, int64_t, uint32_t>(), 0.1f,
     unary_forms<LowBits<32, false>, int64_t>()},
    {kI, kL, loop<Plain<int64_t>, int32_t, int64_t>(), 0.1f},
    {kL, kI, loop<Plain<int32_t>, int64_t, int32_t>(), 0.1f},
    {kF, kD, loop<Plain<double>, float, double>(), 0.1f},
    {kD, kF, loop<Plain<float>, double, float>(), 0.1f},
    {kI, kF, loop<Plain<float>, int32_t, float>(), 0.06f, unary_forms<Plain<float>, int32_t>()},
    {kI, kD, loop<Plain<double>, int32_t, double>(), 0.1f},
    {kL, kF, loop<Plain<float>, int64_t, float>(), 0.5f},
    {kL, kD, loop<Plain<double>, int64_t, double>(), 0.5f, unary_forms<Plain<double>, int64_t>()},
    {kF, kI, loop<Saturated<int32_t>, float, int32_t>(), 0.1f,
     unary_forms<Saturated<int32_t>, float>()},
    {kF, kL, loop<Saturated<int64_t>, float, int64_t>(), 0.5f},
    {kD, kI, loop<Saturated<int32_t>, double, int32_t>(), 0.2f},
    {kD, kL, loop<Saturated<int64_t>, double, int64_t>(), 0.5f},
    {kF, DType::kBool, loop<ToBool, float, bool>(), 0.06f, unary_forms<ToBool, float>()},
    {kD, DType::kBool, loop<ToBool, double, bool>(), 0.1f, unary_forms<ToBool, double>()},
    {kI, DType::kBool, loop<ToBool, int32_t, bool>(), 0.06f, unary_forms<ToBool, int32_t>()},
    {kL, DType::kBool, loop<ToBool, int64_t, bool>(), 0.1f, unary_forms<ToBool, int64_t>()},
    {DType::kBool, kI, loop<Plain<int32_t>, uint8_t, int32_t>(), 0.06f,
     unary_forms<TruthToOne, int32_t>()},
};

}  // namespace

void register_conversion_kernels(KernelRegistry&) { host::add_conversions(kConversions); }

}  // namespace treenail::cpu
