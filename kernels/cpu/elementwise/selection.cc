// SPDX-License-Identifier: Apache-2.0
// Select by element size, whatever the type; ClipByValue by the level's vectors. Kernels are
// prepared by the tile engine; Select has its own entry there because its loops go by size
// (host/elementwise/select.cc).
#include "kernels/elementwise/selection.h"
#include "kernels/cpu/elementwise/loops.h"
#include "kernels/host/elementwise/select.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::cpu {
namespace {

using namespace elementwise;

// Conditions for one vector: each byte spread over a lane, not zero where it is true. The compilers
// take GCC's conversion of byte vectors apart element by element, hence the instructions by name.
template <class T>
TN_INLINE Vec<T> spread_conditions(const bool* c) {
  constexpr int kSize = sizeof(T);
  if constexpr (kSize == 1) return load<Vec<T>>(c);
#if defined(__AVX512BW__)
  if constexpr (kSize == 2) return (Vec<T>)_mm512_cvtepi8_epi16(load<__m256i>(c));
  if constexpr (kSize == 4) return (Vec<T>)_mm512_cvtepi8_epi32(load<__m128i>(c));
  if constexpr (kSize == 8) return (Vec<T>)_mm512_cvtepi8_epi64(_mm_set1_epi64x(load<int64_t>(c)));
#elif defined(__AVX2__)
  if constexpr (kSize == 2) return (Vec<T>)_mm256_cvtepi8_epi16(load<__m128i>(c));
  if constexpr (kSize == 4) return (Vec<T>)_mm256_cvtepi8_epi32(_mm_set1_epi64x(load<int64_t>(c)));
  if constexpr (kSize == 8) return (Vec<T>)_mm256_cvtepi8_epi64(_mm_set1_epi32(load<int32_t>(c)));
#elif defined(__SSE2__)
  if constexpr (kSize == 2) {
    const __m128i b = _mm_set1_epi64x(load<int64_t>(c));
    return (Vec<T>)_mm_unpacklo_epi8(b, b);
  } else if constexpr (kSize == 4) {
    const __m128i b = _mm_set1_epi32(load<int32_t>(c));
    const __m128i w = _mm_unpacklo_epi8(b, b);
    return (Vec<T>)_mm_unpacklo_epi16(w, w);
  } else {
    return (Vec<T>)_mm_set_epi64x(c[1] ? -1 : 0, c[0] ? -1 : 0);
  }
#endif
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = c[i];
  return v;
}

template <class T>
TN_INLINE Vec<T> choose(const bool* c, Vec<T> a, Vec<T> b) {
  return spread_conditions<T>(c) != Vec<T>{} ? a : b;
}

// `sa`, `sb`: lanes from one vector to the next, or 0 for copies of one element.
template <class T>
TN_ONE_BODY void run_select(T* y, const bool* c, const T* a, int64_t sa, const T* b, int64_t sb,
                            int64_t n) {
  using V = Vec<T>;
  constexpr int64_t kL = kLanes<T>;
  for (; n >= kL; n -= kL, y += kL, c += kL, a += sa, b += sb) {
    store(y, choose<T>(c, load<V>(a), load<V>(b)));
  }
  for (int64_t k = 0; k < n; ++k) {
    y[k] = c[k] ? a[k] : b[k];
    TN_STAY_SCALAR;
  }
}

template <class T, unsigned kMask>
void select_loop(void* y, const void* condition, const void* a, const void* b, int64_t n,
                 const LoopParams&) {
  constexpr int64_t kL = kLanes<T>;
  const auto* c = static_cast<const bool*>(condition);
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  auto* r = static_cast<T*>(y);
  if constexpr (kMask == 2) {
    run_select(r, c, Copies<T>(a).lane, 0, q, kL, n);
  } else if constexpr (kMask == 4) {
    run_select(r, c, p, kL, Copies<T>(b).lane, 0, n);
  } else if constexpr (kMask == 6) {
    run_select(r, c, Copies<T>(a).lane, 0, Copies<T>(b).lane, 0, n);
  } else {
    run_select(r, c, p, kL, q, kL, n);
  }
}

// In registers by bits, whatever the lanes: a condition is ones or zeros over all of its lane.
struct Choose {
  TN_INLINE static VecI apply(VecI c, VecI a, VecI b) { return (c & a) | (~c & b); }
};

template <class T>
constexpr Loops select_loops() {
  return {{select_loop<T, 0>, nullptr, select_loop<T, 2>, nullptr, select_loop<T, 4>, nullptr,
           select_loop<T, 6>},
          ternary_forms<Choose, int32_t>(0)};
}

template <class T>
TN_ONE_BODY void run_clip(T* y, const T* t, const T* low, int64_t sl, const T* high, int64_t sh,
                          int64_t n) {
  using V = Vec<T>;
  constexpr int64_t kL = kLanes<T>;
  for (; n >= kL; n -= kL, y += kL, t += kL, low += sl, high += sh) {
    store(y, Clip::apply(load<V>(t), load<V>(low), load<V>(high)));
  }
  for (int64_t k = 0; k < n; ++k) {
    y[k] = Clip::apply(t[k], low[k], high[k]);
    TN_STAY_SCALAR;
  }
}

template <class T, unsigned kMask>
void clip_loop(void* y, const void* t, const void* low, const void* high, int64_t n,
               const LoopParams&) {
  constexpr int64_t kL = kLanes<T>;
  auto* r = static_cast<T*>(y);
  const auto* x = static_cast<const T*>(t);
  if constexpr (kMask == 6) {
    run_clip(r, x, Copies<T>(low).lane, 0, Copies<T>(high).lane, 0, n);
  } else {
    run_clip(r, x, static_cast<const T*>(low), kL, static_cast<const T*>(high), kL, n);
  }
}
template <class T>
constexpr Loops clip_loops() {
  return {{clip_loop<T, 0>, nullptr, nullptr, nullptr, nullptr, nullptr, clip_loop<T, 6>},
          ternary_forms<Clip, T>()};
}

#define TN_CLIP(op, Definition, T, ns) {#op, dtype_of<T>, clip_loops<T>(), ns},

constexpr host::TileOp kOps[] = {TN_CLIP_OPS(TN_CLIP)};

}  // namespace

void register_selection_kernels(KernelRegistry& registry) {
  host::add_tile_ops(registry, kOps);
  host::add_select_kernels(registry, {select_loops<uint8_t>(), select_loops<uint16_t>(),
                                      select_loops<uint32_t>(), select_loops<int64_t>()});
}

}  // namespace treenail::cpu
