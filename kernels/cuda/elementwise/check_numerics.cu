// SPDX-License-Identifier: Apache-2.0
// A copy, and what of it is not finite: judged by bits, an exponent of all ones.
#include "kernels/cuda/elementwise/map.h"

namespace treenail::gpu {

// found[0]: is there a NaN, found[1]: an infinity. `infinity`: its bits.
template <class U>
struct Inspect {
  U infinity;
  int* found;
  TN_DEVICE U operator()(U x) const {
    const U magnitude = static_cast<U>(x & static_cast<U>(static_cast<U>(~U{0}) >> 1));
    if (magnitude >= infinity) atomic_max(found + (magnitude == infinity ? 1 : 0), 1);
    return x;
  }
};

template <class U>
TN_DEVICE void check_numerics(int64_t n, uint64_t infinity, const U* x, U* y, int* found) {
  Broadcast contiguous;
  contiguous.rank = 1;
  contiguous.stride[0][0] = 1;
  map(n, contiguous, Inspect<U>{static_cast<U>(infinity), found}, y, x);
}

TN_KERNEL(check_numerics_2, int64_t n, uint64_t infinity, const uint16_t* x, uint16_t* y,
          int* found) {
  check_numerics(n, infinity, x, y, found);
}
TN_KERNEL(check_numerics_4, int64_t n, uint64_t infinity, const uint32_t* x, uint32_t* y,
          int* found) {
  check_numerics(n, infinity, x, y, found);
}
TN_KERNEL(check_numerics_8, int64_t n, uint64_t infinity, const uint64_t* x, uint64_t* y,
          int* found) {
  check_numerics(n, infinity, x, y, found);
}

}  // namespace treenail::gpu
