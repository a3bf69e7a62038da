// SPDX-License-Identifier: Apache-2.0
// Rows by their indices. Where an index is at fault nothing is read, and zeros stand.
#include "kernels/cuda/indexing/gather_space.h"
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

#define TN_GATHER(bytes, T)                                                                       \
  TN_KERNEL(gather_##bytes##_int32, GatherSpace s, const T* params, const int32_t* indices, T* y, \
            unsigned long long* fault) {                                                          \
    gather(s, params, indices, y, fault);                                                         \
  }                                                                                               \
  TN_KERNEL(gather_##bytes##_int64, GatherSpace s, const T* params, const int64_t* indices, T* y, \
            unsigned long long* fault) {                                                          \
    gather(s, params, indices, y, fault);                                                         \
  }
TN_GATHER(1, uint8_t)
TN_GATHER(2, uint16_t)
TN_GATHER(4, uint32_t)
TN_GATHER(8, uint64_t)
TN_GATHER(16, Bits128)

}  // namespace treenail::gpu
