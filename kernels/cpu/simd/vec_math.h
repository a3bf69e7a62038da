// SPDX-License-Identifier: Apache-2.0
// Elementary functions on vectors: exponentials, logarithms, tanh, sigmoid, error function in
// float; exponential, logarithm, sine and cosine in double, which also carry the float functions
// that need more precision inside (elementwise/through_double.h). Polynomials are minimax fits made
// for this file (Lawson iteration; the error bound stands beside each). Special values come out as
// in IEEE 754's recommended functions: exp(-inf) = 0, log(0) = -inf, NaN stays NaN, denormals are
// kept. tests/cases/transcendental.py says to how many units in the last place each op is held (4,
// and 8 for Erfc); docs/decisions/vector-math.md has what was measured.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/simd/vec_fma.h"

namespace treenail::TN_SIDE {

// c[0] + c[1] x + … by Horner's rule.
template <class V, int kN>
TN_INLINE V polynomial(V x, const ElementOf<V> (&c)[kN]) {
  V p = splat<V>(c[kN - 1]);
  for (int i = kN - 2; i >= 0; --i) p = mul_add(p, x, splat<V>(c[i]));
  return p;
}

// Adding and taking away 1.5 * 2^(mantissa bits) rounds to the nearest whole number and leaves it
// in the low bits.
template <class V>
inline constexpr ElementOf<V> kRounder = sizeof(ElementOf<V>) == 4
                                             ? static_cast<ElementOf<V>>(12582912.0)
                                             : static_cast<ElementOf<V>>(6755399441055744.0);

template <class V>
struct Rounded {
  V value;   // a whole number
  Int<V> n;  // the same as an integer
};
// For |x| below 2^22 (float) or 2^51 (double); elsewhere both are meaningless.
template <class V>
TN_INLINE Rounded<V> round_small(V x) {
  const V magic = splat<V>(kRounder<V>);
  const V shifted = x + magic;
  return {shifted - magic,
          (Int<V>)((Unsigned<V>)bits<Int<V>>(shifted) - (Unsigned<V>)bits<Int<V>>(magic))};
}

// 2^n for n in the range of normal exponents.
template <class V>
TN_INLINE V power_of_two(Int<V> n) {
  constexpr int kMantissa = sizeof(ElementOf<V>) == 4 ? 23 : 52;
  constexpr int kBias = sizeof(ElementOf<V>) == 4 ? 127 : 1023;
  return bits<V>((Int<V>)((Unsigned<V>)(n + kBias) << kMantissa));
}

// x 2^n in two steps, so that results below the smallest normal number are rounded once and
// overflow gives infinity.
template <class V>
TN_INLINE V scale(V x, V n_value, Int<V> n) {
  const Int<V> half = round_small(n_value * splat<V>(ElementOf<V>(0.5))).n;
  return x * power_of_two<V>(half) * power_of_two<V>(n - half);
}

template <class V>
TN_INLINE V clamp(V x, ElementOf<V> low, ElementOf<V> high) {  // NaN stays NaN
  return lesser_of(splat<V>(high), greater_of(splat<V>(low), x));
}

// x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts whose first has trailing zeros: n times it
// is exact.
template <class V>
struct ExpParts {
  Rounded<V> n;
  V r;
};
template <class V>
TN_INLINE ExpParts<V> exp_reduce(V x) {
  using T = ElementOf<V>;
  constexpr bool kFloat = sizeof(T) == 4;
  constexpr T kHigh = kFloat ? T(0.693359375) : T(0x1.62e42feep-1);
  constexpr T kLow = kFloat ? T(-2.12194440054690583e-4) : T(0x1.a39ef35793c76p-33);
  const Rounded<V> n = round_small(x * splat<V>(T(1.44269504088896340736)));
  V r = mul_add(n.value, splat<V>(-kHigh), x);
  r = mul_add(n.value, splat<V>(-kLow), r);
  return {n, r};
}

// e^r - 1 for |r| <= ln 2 / 2: r + r² q(r).
TN_INLINE VecF expm1_reduced(VecF r) {
  constexpr float kQ[] = {0.5f, 0.166665182f, 0.0416662060f, 0.00836895406f,
                          0.00139505998f};  // 2^-28.2
  return mul_add(r * r, polynomial(r, kQ), r);
}
TN_INLINE VecD expm1_reduced(VecD r) {
  constexpr double kQ[] = {0.50000000000000133,   0.16666666666666696,    0.041666666666514036,
                           0.008333333333308662,  0.0013888888947390791,  0.00019841269914501488,
                           2.480148953853937e-05, 2.7557218694430204e-06, 2.7631429954964079e-07,
                           2.5117147854496902e-08};  // 2^-58
  return mul_add(r * r, polynomial(r, kQ), r);
}

// e^x where the result is a normal number: |x| <= kExpNormal.
template <class V>
inline constexpr ElementOf<V> kExpNormal = sizeof(ElementOf<V>) == 4 ? ElementOf<V>(87)
                                                                     : ElementOf<V>(708);
template <class V>
TN_INLINE V exp_normal(V x) {
  constexpr int kMantissa = sizeof(ElementOf<V>) == 4 ? 23 : 52;
  const ExpParts<V> p = exp_reduce(x);
  const V y = expm1_reduced(p.r) + splat<V>(ElementOf<V>(1));
#if defined(__AVX512F__) && !defined(TN_GPU)
  if constexpr (std::is_same_v<V, VecF>) {  // the same, for the product is exact
    return (VecF)_mm512_maskz_scalef_ps(0xffff, (__m512)y, (__m512)p.n.value);
  }
#endif
  return bits<V>((Int<V>)((Unsigned<V>)bits<Int<V>>(y) + ((Unsigned<V>)p.n.n << kMantissa)));
}
// Everywhere, with the same bits where both apply.
template <class V>
TN_RARELY_CALLED V exp_anywhere(V x) {
  using T = ElementOf<V>;
  constexpr bool kFloat = sizeof(T) == 4;
  const ExpParts<V> p = exp_reduce(clamp(x, kFloat ? T(-104) : T(-746), kFloat ? T(89) : T(710)));
  return scale(expm1_reduced(p.r) + splat<V>(T(1)), p.n.value, p.n.n);
}
template <class V>
TN_INLINE V exp(V x) {
  if (__builtin_expect(any(unset(absolute(x) <= splat<V>(kExpNormal<V>))), 0))
    return exp_anywhere(x);
  return exp_normal(x);
}

// Of numbers that are zero or negative, as softmax needs it: no overflow to mind, and what would be
// below the smallest normal number is zero.
template <class V>
TN_INLINE V exp_of_negative(V x) {
  using T = ElementOf<V>;
  constexpr T kLowest = sizeof(T) == 4 ? T(-87.3365478515625) : T(-708.396418532264);
  const V y = x < splat<V>(kLowest) ? V{} : exp_normal(x);
  return x <= V{} ? y : x + splat<V>(T(1));  // NaN falls through to here
}

// 2^n (e^r - 1) + (2^n - 1): no cancellation for small x, where n is 0. Halved until the end, so
// that n = 128 fits.
TN_INLINE VecF expm1(VecF x) {
  const ExpParts<VecF> p = exp_reduce(clamp(x, -25.0f, 89.0f));
  const VecF power = power_of_two<VecF>(p.n.n - 1);
  const VecF half = mul_add(power, expm1_reduced(p.r), power - splat<VecF>(0.5f));
  return absolute(x) < splat<VecF>(0x1p-25f) ? x : half + half;  // x² / 2 is beyond the last bit
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x positive and normal.
template <class V>
struct LogParts {
  V e;
  V f;
};
template <class V>
TN_INLINE LogParts<V> log_reduce(V x) {
  using T = ElementOf<V>;
  using U = Unsigned<V>;
  constexpr bool kFloat = sizeof(T) == 4;
  constexpr int kMantissa = kFloat ? 23 : 52;
  constexpr int kBias = kFloat ? 128 : 1024;  // keeps the shifted exponent positive
  const U root = bits<U>(splat<V>(T(0.70710678118654752440)));
  const U shifted = bits<U>(x) - root + ((U{} + kBias) << kMantissa);
  const U exponent = shifted >> kMantissa;  // e + kBias
  const V magic = splat<V>(kRounder<V>);
  const V e = bits<V>((U)(exponent + bits<U>(magic))) - magic - splat<V>(T(kBias));
  const V m = bits<V>((U)(bits<U>(x) - ((exponent - kBias) << kMantissa)));
  return {e, m - splat<V>(T(1))};
}

// log of positive normal numbers; `bias` is added to the exponent.
TN_INLINE VecF log_normal(VecF x, VecF bias = VecF{}) {
  constexpr float kP[] = {0.333333135f,  -0.250000089f, 0.200021192f,  -0.166679963f, 0.142195508f,
                          -0.124055915f, 0.118881747f,  -0.116756409f, 0.0674660131f};  // 2^-30.3
  const LogParts<VecF> p = log_reduce(x);
  const VecF e = p.e + bias;
  const VecF f2 = p.f * p.f;
  VecF y = f2 * p.f * polynomial(p.f, kP);
  y = mul_add(e, splat<VecF>(-2.12194440054690583e-4f), y);
  y = mul_add(f2, splat<VecF>(-0.5f), y);
  return mul_add(e, splat<VecF>(0.693359375f), p.f + y);
}

// s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - f²/2 + s (f²/2 + R(s²)).
TN_INLINE VecD log_normal(VecD x, VecD bias = VecD{}) {
  constexpr double kR[] = {0.6666666666666734,  0.39999999999414676, 0.2857142874238762,
                           0.22222198573184523, 0.18183564326119675, 0.15314050552112712,
                           0.14795949700582858};  // 2^-57.9
  const LogParts<VecD> p = log_reduce(x);
  const VecD e = p.e + bias;
  const VecD s = p.f / (splat<VecD>(2.0) + p.f);
  const VecD z = s * s;
  const VecD r = z * polynomial(z, kR);
  const VecD half_square = splat<VecD>(0.5) * p.f * p.f;
  const VecD low = mul_add(s, half_square + r, e * splat<VecD>(0x1.a39ef35793c76p-33));
  return e * splat<VecD>(0x1.62e42feep-1) - ((half_square - low) - p.f);
}

// Everywhere, with the same bits for normal numbers.
template <class V>
TN_RARELY_CALLED V log_anywhere(V x) {
  using T = ElementOf<V>;
  using L = Limits<T>;
  constexpr T kScale = sizeof(T) == 4 ? T(8388608.0) : T(4503599627370496.0);
  constexpr T kBias = sizeof(T) == 4 ? T(-23) : T(-52);
  const auto tiny = x < splat<V>(L::kLeast);
  V y = log_normal(tiny ? x * splat<V>(kScale) : x, tiny ? splat<V>(kBias) : V{});
  y = x == splat<V>(L::kInfinity) ? x : y;
  y = x == V{} ? splat<V>(-L::kInfinity) : y;
  y = x < V{} ? splat<V>(L::kNaN) : y;
  return x != x ? x : y;
}
template <class V>
TN_INLINE V log(V x) {
  using L = Limits<ElementOf<V>>;
  const auto usual = (x >= splat<V>(L::kLeast)) & (x <= splat<V>(L::kMost));
  return __builtin_expect(any(unset(usual)), 0) ? log_anywhere(x) : log_normal(x);
}

// log(1 + e) for e in [0, 1]: 2 atanh(s) with s = e / (2 + e).
TN_INLINE VecF log1p_unit(VecF e) {
  constexpr float kP[] = {0.666666746f, 0.399988770f, 0.286168844f, 0.214276657f,
                          0.243009061f};  // 2^-33
  const VecF s = e / (splat<VecF>(2.0f) + e);
  const VecF z = s * s;
  return mul_add(s * z, polynomial(z, kP), s + s);
}

// With m = e^2|x| - 1: m / (m + 2). Beyond 10 (float) or 20 (double) it rounds to 1.
template <class V>
TN_INLINE V tanh(V x) {
  using T = ElementOf<V>;
  const V a = absolute(x), most = splat<V>(sizeof(T) == 4 ? T(10) : T(20));
  const ExpParts<V> p = exp_reduce(lesser_of(most, a) * splat<V>(T(2)));
  const V power = power_of_two<V>(p.n.n);
  const V m = mul_add(power, expm1_reduced(p.r), power - splat<V>(T(1)));
  return copy_sign(m / (m + splat<V>(T(2))), x);
}

// With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) for negative x, whose small values keep their
// precision.
template <class V>
TN_INLINE V sigmoid(V x) {
  const V one = splat<V>(ElementOf<V>(1));
  const V e = exp(-absolute(x));
  return (x < V{} ? e : one) / (one + e);
}

// erf(x) = small part for |x| below 0.93, else sign(x) (1 - tail): the tail keeps its own precision
// down to 6.7e-9.
struct ErfParts {
  VecF tail;   // erfc(|x|), where large
  VecF small;  // erf(x), elsewhere
  Mask<VecF> large;
};
TN_INLINE ErfParts erf_parts(VecF x) {
  constexpr float kSmall[] = {0.128379166f,   -0.376126319f,    0.112836875f,    -0.0268589444f,
                              0.00519991154f, -0.000813005550f, 0.0000831692669f};  // 2^-31
  constexpr float kTail[] = {0.000276167702f, -1.13005531f,      -0.632130146f,
                             -0.109794021f,   0.0262586679f,     -0.00470243208f,
                             0.000584610505f, -0.0000446126069f, 0.00000156411977f};  // 2^-25.7
  const VecF a = absolute(x);
  const VecF z = x * x;
#if defined(__AVX512F__) && !defined(TN_GPU)
  // One polynomial of either's coefficients, lane by lane: choosing costs less than multiplying. A
  // leading zero changes no bit.
  const __mmask16 far = _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(0.93f), _CMP_GT_OQ);
  const auto either = [far](float small, float tail) __attribute__((always_inline)) {
    return (VecF)_mm512_mask_blend_ps(far, _mm512_set1_ps(small), _mm512_set1_ps(tail));
  };
  const VecF v = (VecF)_mm512_mask_min_ps((__m512)z, far, _mm512_set1_ps(4.1f), (__m512)a);
  VecF p = mul_add(either(0, kTail[8]), v, either(0, kTail[7]));
  for (int i = 6; i >= 0; --i) p = mul_add(p, v, either(kSmall[i], kTail[i]));
  const VecF power = exp_normal(p);
  const VecF left = a > splat<VecF>(4.1f) ? VecF{} : power;
  return {left, mul_add(x, p, x), a > splat<VecF>(0.93f)};
#endif
  const VecF log_tail = polynomial(clamp(a, 0.92f, 4.1f), kTail);
  const VecF tail = a > splat<VecF>(4.1f) ? VecF{} : exp_normal(log_tail);
  return {tail, mul_add(x, polynomial(z, kSmall), x), a > splat<VecF>(0.93f)};
}
#if defined(__AVX512F__) && !defined(TN_GPU)
// Sixteen intervals, whose polynomials a permutation picks lane by lane, for |x| below kMost, from
// where on erf rounds to 1. In the first the sum starts from |x| itself, in the others from a place
// where erf is all but a float, so that the leading coefficient costs no precision: 0.76 units in
// the last place, and nowhere falling.
alignas(64) inline constexpr float kErfPlace[16] = {
    0.0f,       0.36810303f, 0.6141968f, 0.86242676f, 1.1065063f, 1.3539429f,
    1.5999756f, 1.8449707f,  2.092102f,  2.3373413f,  2.583252f,  2.8312378f,
    3.078247f,  3.3255615f,  3.5786133f, 3.8325195f};
// By powers of the distance from there.
alignas(64) inline constexpr float kErf[7][16] = {
    {0.0f, 0.39733803f, 0.614937f, 0.77740455f, 0.8823787f, 0.94447744f, 0.97634625f, 0.9909241f,
     0.9969104f, 0.9990519f, 0.9997411f, 0.9999377f, 0.9999866f, 0.99999744f, 0.9999996f,
     0.99999994f},
    {0.12837917f, 0.9853902f, 0.77378947f, 0.5363343f, 0.33168352f, 0.18043602f, 0.087235875f,
     0.03751049f, 0.014177362f, 0.0047844597f, 0.0014266755f, 3.7255525e-04f, 8.6547014e-05f,
     1.7759727e-05f, 3.0950987e-06f, 4.7146372e-07f},
    {-4.2714905e-07f, -0.3627251f, -0.4752594f, -0.4625488f, -0.36700886f, -0.244299f, -0.13957605f,
     -0.06920576f, -0.029660236f, -0.011183274f, -0.0036845298f, -0.0010549396f, -2.6569387e-04f,
     -5.904335e-05f, -1.10747305e-05f, -1.8014983e-06f},
    {-0.3760982f, -0.23945273f, -0.06332764f, 0.08716191f, 0.16016734f, 0.1603663f, 0.119799085f,
     0.0726192f, 0.036642965f, 0.01583074f, 0.005871382f, 0.0018667018f, 5.1786e-04f,
     1.2501444e-04f, 2.539037e-05f, 4.460054e-06f},
    {-5.608556e-04f, 0.1649778f, 0.17792101f, 0.11656426f, 0.033545773f, -0.027313037f,
     -0.049183495f, -0.043919865f, -0.028486496f, -0.014711523f, -0.006516061f, -0.0022654377f,
     -8.316714e-04f, -1.9105268e-04f, -4.1913456e-05f, -8.658383e-06f},
    {0.11762431f, 0.047599606f, -0.024522465f, -0.065921605f, -0.06258723f, -0.0333876f,
     -0.004439836f, 0.010492274f, 0.0127658555f, 0.009059691f, 0.004816497f, 0.0020433222f,
     7.2158815e-04f, 2.1491658e-04f, 5.286756e-05f, 1.0771519e-05f},
    {-0.018492524f, -0.0495129f, -0.04417086f, -0.010887722f, 0.021564785f, 0.030145075f,
     0.010074764f, 0.005161322f, 5.071478e-04f, -0.0057722884f, 0.004503729f, -0.002420762f,
     0.004750606f, -7.1032315e-05f, -4.68197e-05f, 1.0380393e-05f}};  // 2^-27.6
TN_INLINE VecF erf(VecF x) {
  constexpr float kScale = 4.0625f, kMost = 3.9384613f;
  const VecF a = lesser_of(splat<VecF>(kMost), absolute(x));
  const __m512 magic = _mm512_set1_ps(kRounder<VecF>);
  const __m512 interval = _mm512_maskz_fmadd_round_ps(  // in the low bits
      0xffff, (__m512)a, _mm512_set1_ps(kScale), magic, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const auto pick = [interval](const float* row) __attribute__((always_inline)) {
    return (VecF)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)interval, _mm512_load_ps(row));
  };
  const VecF distance = a - pick(kErfPlace);
  VecF p = pick(kErf[6]);
  for (int i = 5; i > 0; --i) p = mul_add(p, distance, pick(kErf[i]));
  const __mmask16 later = _mm512_cmp_ps_mask(interval, magic, _CMP_NEQ_UQ);
  const VecF start = (VecF)_mm512_mask_permutexvar_ps((__m512)a, later, (__m512i)interval,
                                                      _mm512_load_ps(kErf[0]));
  return copy_sign(mul_add(p, distance, start), x);
}
#else
TN_INLINE VecF erf(VecF x) {
  const ErfParts p = erf_parts(x);
  return copy_sign(p.large ? splat<VecF>(1.0f) - p.tail : p.small, x);
}
#endif

// Sine and cosine to float's precision, for |x| up to kMostRadians: x = n pi/2 + r.
inline constexpr double kMostRadians = 1e6;
struct SineCosine {
  VecD sine;
  VecD cosine;
};
TN_INLINE SineCosine sine_cosine(VecD x) {
  constexpr double kSine[] = {-0.16666666640588687, 0.0083333292805689504, -0.00019839304427337053,
                              2.7180465680927594e-06};  // 2^-37
  constexpr double kCosine[] = {0.041666666622476742, -0.0013888883722605479,
                                2.4799511760371413e-05, -2.7209547534831509e-07};  // 2^-43
  const Rounded<VecD> n = round_small(x * splat<VecD>(0.63661977236758134308));
  VecD r = mul_add(n.value, splat<VecD>(-1.57079632673412561417), x);
  r = mul_add(n.value, splat<VecD>(-6.07710050650619224932e-11), r);
  const VecD z = r * r;
  const VecD sine = mul_add(r * z, polynomial(z, kSine), r);
  const VecD cosine =
      mul_add(z * z, polynomial(z, kCosine), mul_add(z, splat<VecD>(-0.5), splat<VecD>(1.0)));
  const auto odd = (n.n & 1) != 0;
  const VecD s = odd ? cosine : sine, c = odd ? sine : cosine;
  const auto negative_sine = (n.n & 2) != 0, negative_cosine = ((n.n + 1) & 2) != 0;
  return {negative_sine ? -s : s, negative_cosine ? -c : c};
}

#if defined(TN_FUSED)
// In float alone where products are exact inside a sum: pi/2 in three parts. Up to
// kMostFloatRadians.
inline constexpr float kMostFloatRadians = 30000.0f;
struct QuadrantF {
  VecF sine;  // of r, the rest after n quarter turns
  VecF cosine;
  Int<VecF> n;
};
TN_INLINE QuadrantF quadrant(VecF x) {
  constexpr float kSine[] = {-0.166666552f, 0.00833215844f, -0.00019514958f};     // 2^-28
  constexpr float kCosine[] = {0.0416666456f, -0.00138873642f, 2.44380899e-05f};  // 2^-33
  const Rounded<VecF> n = round_small(x * splat<VecF>(0.636619747f));
  VecF r = mul_add(n.value, splat<VecF>(-1.5707964f), x);
  r = mul_add(n.value, splat<VecF>(4.371139e-08f), r);
  r = mul_add(n.value, splat<VecF>(1.7151245e-15f), r);
  const VecF z = r * r;
  const VecF sine = mul_add(r * z, polynomial(z, kSine), r);
  const VecF cosine =
      mul_add(z * z, polynomial(z, kCosine), mul_add(z, splat<VecF>(-0.5f), splat<VecF>(1.0f)));
  return {sine, cosine, n.n};
}
#endif

}  // namespace treenail::TN_SIDE
