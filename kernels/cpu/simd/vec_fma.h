// SPDX-License-Identifier: Apache-2.0
// Fused multiply-add, square root and the greater of two on the vectors of vec.h: the machine's
// instruction where the level has one, behind the compiler's own macros, with a portable path
// beside.
#pragma once

#include "kernels/cpu/simd/vec.h"

#if defined(TN_GPU)
#elif defined(__SSE2__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // the compiler's own header: GCC bug 105593
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

// Whether mul_add rounds once at this level.
#if defined(TN_GPU) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define TN_FUSED
#endif

namespace treenail::TN_SIDE {

// a*b + c: one rounding where the level has the instruction, two elsewhere. For polynomials only,
// never for the ops whose result is defined to the bit.
TN_INLINE float mul_add(float a, float b, float c) {
#if defined(TN_FUSED)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
TN_INLINE double mul_add(double a, double b, double c) {
#if defined(TN_FUSED)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
#if !defined(TN_GPU)
TN_INLINE VecF mul_add(VecF a, VecF b, VecF c) {
#if defined(__AVX512F__)
  return (VecF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (VecF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
  return (VecF)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
TN_INLINE VecD mul_add(VecD a, VecD b, VecD c) {
#if defined(__AVX512F__)
  return (VecD)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (VecD)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (VecD)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}
#if defined(__AVX512F__)
TN_INLINE Vec256<float> mul_add(Vec256<float> a, Vec256<float> b, Vec256<float> c) {
  return (Vec256<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
TN_INLINE Vec256<double> mul_add(Vec256<double> a, Vec256<double> b, Vec256<double> c) {
  return (Vec256<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif
#endif

// a > b ? a : b and a < b ? a : b, so b where either is NaN or both are zeros: the machine's
// instruction, of which the compilers make a comparison and a choice.
template <class V>
TN_INLINE V greater_of(V a, V b) {
  return a > b ? a : b;
}
template <class V>
TN_INLINE V lesser_of(V a, V b) {
  return a < b ? a : b;
}
#if defined(TN_GPU)
#elif defined(__AVX512F__)
TN_INLINE VecF greater_of(VecF a, VecF b) {
  return (VecF)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}
TN_INLINE VecF lesser_of(VecF a, VecF b) {
  return (VecF)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
}
TN_INLINE VecD greater_of(VecD a, VecD b) {
  return (VecD)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
}
TN_INLINE VecD lesser_of(VecD a, VecD b) {
  return (VecD)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
}
#elif defined(__AVX__)
TN_INLINE VecF greater_of(VecF a, VecF b) { return (VecF)_mm256_max_ps((__m256)a, (__m256)b); }
TN_INLINE VecF lesser_of(VecF a, VecF b) { return (VecF)_mm256_min_ps((__m256)a, (__m256)b); }
TN_INLINE VecD greater_of(VecD a, VecD b) { return (VecD)_mm256_max_pd((__m256d)a, (__m256d)b); }
TN_INLINE VecD lesser_of(VecD a, VecD b) { return (VecD)_mm256_min_pd((__m256d)a, (__m256d)b); }
#elif defined(__SSE2__)
TN_INLINE VecF greater_of(VecF a, VecF b) { return (VecF)_mm_max_ps((__m128)a, (__m128)b); }
TN_INLINE VecF lesser_of(VecF a, VecF b) { return (VecF)_mm_min_ps((__m128)a, (__m128)b); }
TN_INLINE VecD greater_of(VecD a, VecD b) { return (VecD)_mm_max_pd((__m128d)a, (__m128d)b); }
TN_INLINE VecD lesser_of(VecD a, VecD b) { return (VecD)_mm_min_pd((__m128d)a, (__m128d)b); }
#endif

TN_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
TN_INLINE double square_root(double x) { return __builtin_sqrt(x); }
#if !defined(TN_GPU)
TN_INLINE VecF square_root(VecF x) {
#if defined(__AVX512F__)
  return (VecF)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
#elif defined(__AVX__)
  return (VecF)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
  return (VecF)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__)
  return (VecF)vsqrtq_f32((float32x4_t)x);
#else
  for (int i = 0; i < kLanes<float>; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
TN_INLINE VecD square_root(VecD x) {
#if defined(__AVX512F__)
  return (VecD)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#elif defined(__AVX__)
  return (VecD)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
  return (VecD)_mm_sqrt_pd((__m128d)x);
#elif defined(__aarch64__)
  return (VecD)vsqrtq_f64((float64x2_t)x);
#else
  for (int i = 0; i < kLanes<double>; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}
#endif

// Is any lane of a comparison's result (all ones or all zeros each) set?
TN_INLINE bool any(bool mask) { return mask; }
#if !defined(TN_GPU)
template <class M>
TN_INLINE bool any(M mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX__)
  return _mm256_testz_si256((__m256i)mask, (__m256i)mask) == 0;
#elif defined(__SSE2__)
  return _mm_movemask_epi8((__m128i)mask) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
  uint64_t words[sizeof(M) / 8];
  std::memcpy(words, &mask, sizeof(M));
  uint64_t all = 0;
  for (uint64_t word : words) all |= word;
  return all != 0;
#endif
}
#endif

}  // namespace treenail::TN_SIDE
