// SPDX-License-Identifier: Apache-2.0
// Stores that bypass the caches, of outputs so large that they would push out the inputs, after
// each line had been read to be overwritten.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {

// `to`: at a multiple of kVecBytes. A plain store where there is no other.
template <class V>
TN_INLINE void stream(void* to, V v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(static_cast<float*>(to), bits<__m512>(v));
#elif defined(__AVX__)
  _mm256_stream_ps(static_cast<float*>(to), bits<__m256>(v));
#elif defined(__SSE2__)
  _mm_stream_ps(static_cast<float*>(to), bits<__m128>(v));
#else
  store(to, v);
#endif
}

// Before others may read what was streamed: its stores are in no order with later ones.
inline void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace treenail::cpu
