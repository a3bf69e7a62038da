// SPDX-License-Identifier: Apache-2.0
// The first elements of sequences in reverse, by their size. A length at fault moves nothing.
#include "kernels/cuda/language/gpu.h"

#include "kernels/cuda/arrays/sequence_space.h"
#include "kernels/cuda/language/bits.h"
#include "kernels/cuda/language/fault.h"

namespace treenail::gpu {

TN_DEVICE int64_t coordinate(const Divisor& step, const Divisor& extent, int64_t row) {
  return divided(extent, quotient(step, row)).rest;
}

template <class T, class Length>
TN_DEVICE void reverse_sequence(const SequenceSpace& s, const T* x, const Length* lengths, T* y,
                                unsigned long long* fault) {
  for (int64_t i = first(); i < s.lengths; i += stride())
    checked(static_cast<int64_t>(lengths[i]), s.seq_extent.size + 1, i, fault);
  for (int64_t i = first(); i < s.n; i += stride()) {
    const int64_t row = quotient(s.row, i);
    const int64_t place = coordinate(s.seq_stride, s.seq_extent, row);
    const auto length =
        static_cast<int64_t>(lengths[coordinate(s.batch_stride, s.batch_extent, row)]);
    const bool moves = place < length && length <= s.seq_extent.size;
    const int64_t by = moves ? (length - 1 - 2 * place) * s.seq_stride.size * s.row.size : 0;
    y[i] = x[i + by];
  }
}

#define TN_REVERSE(bytes, T)                                                                       \
  TN_KERNEL(reverse_sequence_##bytes##_int32, SequenceSpace s, const T* x, const int32_t* lengths, \
            T* y, unsigned long long* fault) {                                                     \
    reverse_sequence(s, x, lengths, y, fault);                                                     \
  }                                                                                                \
  TN_KERNEL(reverse_sequence_##bytes##_int64, SequenceSpace s, const T* x, const int64_t* lengths, \
            T* y, unsigned long long* fault) {                                                     \
    reverse_sequence(s, x, lengths, y, fault);                                                     \
  }
TN_REVERSE(1, uint8_t)
TN_REVERSE(2, uint16_t)
TN_REVERSE(4, uint32_t)
TN_REVERSE(8, uint64_t)
TN_REVERSE(16, Bits128)

}  // namespace treenail::gpu
