// SPDX-License-Identifier: Apache-2.0
// Elements from one layout to another: the device's side of host/arrays/strided_copy.h.
#include "kernels/cuda/arrays/copy_space.h"
#include "kernels/cuda/language/bits.h"
#include "kernels/cuda/language/gpu.h"

namespace treenail::gpu {

// Index is as narrow as the number of elements allows: a division of 64 bits takes several times as
// long.
template <class Index, class T>
TN_DEVICE void copy_by(const CopySpace& s, const T* from, T* to) {
  const auto n = static_cast<Index>(s.elements);
  for (auto i = static_cast<Index>(first()); i < n; i += static_cast<Index>(stride())) {
    Index rest = i;
    int64_t source = 0, target = 0;
    for (int axis = s.rank - 1; axis > 0; --axis) {
      const auto extent = static_cast<Index>(s.extent[axis]);
      const Index above = rest / extent;
      const auto at = static_cast<int64_t>(rest - above * extent);
      source += at * s.from[axis];
      target += at * s.to[axis];
      rest = above;
    }
    to[target + static_cast<int64_t>(rest) * s.to[0]] =
        from[source + static_cast<int64_t>(rest) * s.from[0]];
  }
}

template <class T>
TN_DEVICE void copy(const CopySpace& s, const T* from, T* to) {
  if (s.elements < (int64_t{1} << 31)) {  // and one stride more stays below 2^32
    copy_by<uint32_t>(s, from, to);
  } else {
    copy_by<uint64_t>(s, from, to);
  }
}

TN_KERNEL(copy_1, CopySpace s, const uint8_t* from, uint8_t* to) { copy(s, from, to); }
TN_KERNEL(copy_2, CopySpace s, const uint16_t* from, uint16_t* to) { copy(s, from, to); }
TN_KERNEL(copy_4, CopySpace s, const uint32_t* from, uint32_t* to) { copy(s, from, to); }
TN_KERNEL(copy_8, CopySpace s, const uint64_t* from, uint64_t* to) { copy(s, from, to); }
TN_KERNEL(copy_16, CopySpace s, const Bits128* from, Bits128* to) { copy(s, from, to); }

}  // namespace treenail::gpu
