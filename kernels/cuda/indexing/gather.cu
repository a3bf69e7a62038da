// SPDX-License-Identifier: Apache-2.0
// Rows by their indices. Where an index is at fault nothing is read, and zeros stand.
#include "kernels/cuda/indexing/gather_space.h"
#include "kernels/cuda/indexing/row_of.h"
#include "kernels/cuda/language/bits.h"
#include "kernels/cuda/language/fault.h"

namespace treenail::gpu {

template <class T, class Index>
TN_DEVICE void gather(const GatherSpace& s, const T* params, const Index* indices, T* y,
                      unsigned long long* fault) {
  const int64_t n = s.batch * s.outer * s.count * s.inner;
  for (int64_t i = first(); i < n; i += stride()) {
    const int64_t column = i % s.inner, row = i / s.inner;
    const int64_t block = row / s.count;  // of batch and outer
    const int64_t place = block / s.outer * s.count + row % s.count;
    const auto index = static_cast<int64_t>(indices[place]);
    const bool good = checked(index, s.extent, place, fault);
    y[i] = good ? params[(block * s.extent + index) * s.inner + column] : T{};
  }
}

// By multi-dimensional indices: a group of lanes for a row of `width` elements.
template <class T, class Index>
TN_DEVICE void gather_nd(const Places& p, int64_t width, int lanes, const T* params,
                         const Index* indices, T* y, unsigned long long* fault) {
  const int64_t groups = threads() / lanes;
  for (int64_t i = block() * groups + thread() / lanes; i < p.n; i += blocks() * groups) {
    const int64_t row = row_of(p, indices, i, fault);
    for (int64_t c = thread() % lanes; c < width; c += lanes)
      y[i * width + c] = row < p.rows ? params[row * width + c] : T{};
  }
}

#define TN_GATHER(bytes, T)                                                                       \
  TN_KERNEL(gather_##bytes##_int32, GatherSpace s, const T* params, const int32_t* indices, T* y, \
            unsigned long long* fault) {                                                          \
    gather(s, params, indices, y, fault);                                                         \
  }                                                                                               \
  TN_KERNEL(gather_##bytes##_int64, GatherSpace s, const T* params, const int64_t* indices, T* y, \
            unsigned long long* fault) {                                                          \
    gather(s, params, indices, y, fault);                                                         \
  }                                                                                               \
  TN_KERNEL(gather_nd_##bytes##_int32, Places p, int64_t width, int lanes, const T* params,       \
            const int32_t* indices, T* y, unsigned long long* fault) {                            \
    gather_nd(p, width, lanes, params, indices, y, fault);                                        \
  }                                                                                               \
  TN_KERNEL(gather_nd_##bytes##_int64, Places p, int64_t width, int lanes, const T* params,       \
            const int64_t* indices, T* y, unsigned long long* fault) {                            \
    gather_nd(p, width, lanes, params, indices, y, fault);                                        \
  }
TN_GATHER(1, uint8_t)
TN_GATHER(2, uint16_t)
TN_GATHER(4, uint32_t)
TN_GATHER(8, uint64_t)
TN_GATHER(16, Bits128)

}  // namespace treenail::gpu
