// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete gamma functions P(a, x) and Q = 1 - P of one element, for a that may
// carry a derivative (dual.h). The regions are those of Gil, Segura and Temme, "Efficient and
// accurate algorithms for the computation and inversion of the incomplete gamma function ratios",
// SIAM J. Sci. Comput. 34 (2012): power series, continued fraction, and Temme's uniform asymptotic
// expansion where a is large and x near it.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/host/special/gamma_parts.h"

namespace treenail::host {

template <class N>
struct GammaRatios {
  N p;
  N q;
};

// x^a e^-x / gamma(a + 1).
template <class N, class T>
N gamma_density(N a, T x) {
  constexpr T kHalfLogTwoPi = T(0.91893853320467274178032973640561763986L);
  if (value_of(a) < 20) {
    return exponential(a * N(std::log(x)) - N(x) - lgamma_above(a + N(1)));
  }
  const N distance = (N(x) - a) / a;
  const N left = a * rest_of_log1p(distance) + stirling_rest(a) + N(kHalfLogTwoPi);
  return exponential(-left) / root(a);
}

// P = density (1 + x / (a + 1) + x² / (a + 1)(a + 2) + …).
template <class N, class T>
N lower_series(N a, T x) {
  N term(1), sum(1), next = a;
  for (int k = 0; k < 100000; ++k) {
    next = next + N(1);
    term = term * N(x) / next;
    sum = sum + term;
    if (size_of(term) < size_of(sum) * std::numeric_limits<T>::epsilon() / 4) break;
  }
  return sum * gamma_density(a, x);
}

// Q by Legendre's continued fraction, from the front (Thompson and Barnett, J. Comput. Phys. 64,
// 1986, after Lentz).
template <class N, class T>
N upper_fraction(N a, T x) {
  N b = N(x + 1) - a, d = N(1) / b, h = d, c(0);
  for (int k = 1; k < 100000; ++k) {
    const N numerator = N(static_cast<T>(k)) * (a - N(static_cast<T>(k)));
    b = b + N(2);
    d = N(1) / (b + numerator * d);
    c = k == 1 ? b : b + numerator / c;
    const N factor = c * d;
    h = h * factor;
    if (is_negligible(factor - N(1))) break;
  }
  return h * a * gamma_density(a, x);
}

// log gamma(1 + a) for 0 < a < 1/2: by what the zeta function exceeds 1 by (Abramowitz and Stegun
// 6.1.33).
template <class N>
N lgamma_above_one(N a) {
  using T = decltype(value_of(a));
  static constexpr T kTerms[] = {0.3224670334241132182362L,      -0.06735230105319809513325L,
                                 0.020580808427784547879L,       -0.007385551028673985266273L,
                                 0.002890510330741523285753L,    -0.001192753911703260977114L,
                                 0.0005096695247430424223357L,   -0.0002231547584535793797614L,
                                 0.0000994575127818085337146L,   -0.00004492623673813314170021L,
                                 0.00002050721277567069155317L,  -0.000009439488275268395903987L,
                                 0.000004374866789907487804182L, -0.000002039215753801366236782L,
                                 9.551412130407419832857e-7L,    -4.492469198764566043294e-7L,
                                 2.120718480555466586923e-7L,    -1.004322482396809960872e-7L,
                                 4.76981016936398056576e-8L,     -2.271109460894316491032e-8L,
                                 1.083865921489695409107e-8L,    -5.183475041970046655121e-9L,
                                 2.483674543802478317185e-9L,    -1.192140140586091207443e-9L,
                                 5.73136724167886201333e-10L,    -2.759522885124233145178e-10L,
                                 1.33047643742444894815e-10L,    -6.422964563838100022082e-11L,
                                 3.104424774732227276239e-11L,   -1.502138408075414217093e-11L,
                                 7.275974480239079662505e-12L,   -3.527742476575915083615e-12L,
                                 1.711991790559617908601e-12L,   -8.315385841420284819798e-13L,
                                 4.042200525289440065536e-13L,   -1.966475631096616490411e-13L,
                                 9.573630387838555763782e-14L,   -4.664076026428374224576e-14L};
  constexpr T kOneLessEuler = T(0.42278433509846713939348790991759756896L);
  if (value_of(a) >= 0.5) return lgamma_above(a + N(1));
  N sum(0);
  for (int k = 37; k >= 0; --k) sum = sum * a + N(kTerms[k]);
  return a * N(kOneLessEuler) - logarithm_of_one_plus(a) + a * a * sum;
}

// Q for a < 1 and x <= 1, where P is near 1.
template <class N, class T>
N upper_series(N a, T x) {
  const N exponent = a * N(std::log(x)) - lgamma_above_one(a);
  N sum(0);
  T power = 1;
  for (int k = 1; k < 1000; ++k) {
    power *= -x / static_cast<T>(k);
    const N term = N(power) / (a + N(static_cast<T>(k)));
    sum = sum + term;
    if (size_of(term) < size_of(sum) * std::numeric_limits<T>::epsilon() / 4) break;
  }
  return -minus_one_of_exponential(exponent) - exponential(exponent) * a * sum;
}

// P and Q from the normal distribution and a correction by powers of 1/a, whose coefficients are
// power series in eta (DLMF 8.12.8 to 8.12.11).
template <class N, class T>
GammaRatios<N> uniform_expansion(N a, T x) {
  static constexpr T kTerms[9][19] = {
      {-0.3333333333333333333333L, 0.08333333333333333333333L, -0.01481481481481481481481L,
       0.001157407407407407407407L, 0.0003527336860670194003527L, -0.0001787551440329218106996L,
       0.00003919263178522437781697L, -0.000002185448510679992161474L,
       -0.000001854062210715159960702L, 8.296711340953086005016e-7L, -1.766595273682607930436e-7L,
       6.707853543401498580369e-9L, 1.026180978424030804257e-8L, -4.382036018453353186553e-9L,
       9.147699582236790234182e-10L, -2.551419399494624976688e-11L, -5.830772132550425067464e-11L,
       2.436194802066741624369e-11L, -5.027669280114175589091e-12L},
      {-0.001851851851851851851852L, -0.003472222222222222222222L, 0.002645502645502645502646L,
       -0.0009902263374485596707819L, 0.0002057613168724279835391L, -4.018775720164609053498e-7L,
       -0.00001809855033448997783703L, 0.000007649160916081110084637L,
       -0.000001612090089456344600378L, 4.647127802807434342261e-9L, 1.378633446915720959312e-7L,
       -5.752545603517704964022e-8L, 1.195162859977814732431e-8L, -1.754324171974764762375e-11L,
       -1.009154371060041262746e-9L, 4.162792991842582636234e-10L, -8.563907026492980638074e-11L},
      {0.004133597883597883597884L, -0.002681327160493827160494L, 0.0007716049382716049382716L,
       0.000002009387860082304526749L, -0.0001073665322636516052154L, 0.00005292344882912012541642L,
       -0.00001276063518861872771338L, 3.42357873409613807419e-8L, 0.000001372195730906293320559L,
       -6.298992138380055022907e-7L, 1.428061420606424179158e-7L, -2.047709842199086601492e-10L,
       -1.409252991086752105329e-8L, 6.228974084922022033564e-9L, -1.367048839661711349927e-9L},
      {0.0006494341563786008230453L, 0.0002294720936213991769547L, -0.0004691894943952557121281L,
       0.0002677206320628388529623L, -0.00007561801671883976410725L, -2.396505113867296651933e-7L,
       0.00001108265411534730236148L, -0.0000056749528269915965675L, 0.000001423090073243588391455L,
       -2.786108029152814224058e-11L, -1.695840409193027728986e-7L, 8.099464905388082363353e-8L,
       -1.911116848597365406067e-8L},
      {-0.0008618882909167116986047L, 0.000784039221720066627474L, -0.0002990724803031901797334L,
       -0.000001463845257884341817812L, 0.00006641498215465122186659L,
       -0.00003968365047179434664431L, 0.00001137572697067841909806L, 2.507497226237532801652e-10L,
       -0.000001695414953655830601472L, 8.907507532205309688829e-7L, -2.292934834000804870572e-7L},
      {-0.0003367985533663581503088L, -0.00006972813758365857774294L, 0.0002772753244959392078734L,
       -0.0001993257051618884770034L, 0.00006797780477937207838816L, 1.419062920643967014834e-7L,
       -0.00001359404818976869327846L, 0.000008018470256334201539719L,
       -0.00000229148117650809517038L},
      {0.0005313079364639922231657L, -0.0005921664373536938828648L, 0.0002708782096718044827713L,
       7.90235323266032787212e-7L, -0.00008153969367561968750929L, 0.00005611682753106249650038L,
       -0.00001832911658284337556733L},
      {0.0003443676068923776712543L, 0.00005171790908260592193371L, -0.0003349316108114223631166L,
       0.0002812695154763237022737L, -0.0001097658224468473102354L},
      {-0.000652623918595309418922L, 0.0008394987206720872799934L, -0.0004382970985417210050611L}};
  constexpr T kTwoPi = T(6.28318530717958647692528676655900577L);
  const N distance = (N(x) - a) / a;
  const N eta = distance * root(N(2) * scaled_rest_of_log1p(distance));
  N sum(0);
  for (int k = 8; k >= 0; --k) {
    N row(0);
    for (int n = 18 - 2 * k; n >= 0; --n) row = row * eta + N(kTerms[k][n]);
    sum = sum / a + row;
  }
  const N z = eta * root(a * N(T(0.5)));
  const N rest = exponential(-(z * z)) / root(N(kTwoPi) * a) * sum;
  return {N(T(0.5)) * complementary_error(-z) - rest, N(T(0.5)) * complementary_error(z) + rest};
}

// a > 0 and x > 0, both finite.
template <class N, class T>
GammaRatios<N> gamma_ratios(N a, T x) {
  const T v = value_of(a);
  if (v >= 200 && std::fabs(x - v) < T(0.3) * v) return uniform_expansion(a, x);
  if (x >= v + 1 || (v < 1 && x > 1)) {
    const N q = upper_fraction(a, x);
    return {N(1) - q, q};
  }
  const N p = lower_series(a, x);
  return {p, v < 1 ? upper_series(a, x) : N(1) - p};
}

}  // namespace treenail::host
