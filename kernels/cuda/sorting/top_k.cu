// SPDX-License-Identifier: Apache-2.0
// The largest elements of rows: keys whose ascending order is that of values descending, and what
// the sorted positions choose. InTopK counts.
#include "kernels/cuda/language/group.h"
#include "kernels/cuda/sorting/top_k_types.h"
#include "kernels/elementwise/half.h"

namespace treenail::gpu {

template <int kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};

// The bits of infinity; 0 for integers, which have none.
template <class S>
inline constexpr uint64_t kInfinity = 0;
template <>
inline constexpr uint64_t kInfinity<float> = 0x7f800000u;
template <>
inline constexpr uint64_t kInfinity<double> = 0x7ff0000000000000u;
template <>
inline constexpr uint64_t kInfinity<Float16> = 0x7c00u;
template <>
inline constexpr uint64_t kInfinity<BFloat16> = 0x7f80u;

// All NaNs are the largest, and the zeros equal.
template <class S>
TN_DEVICE auto descending_key(S x) {
  using U = typename UnsignedOf<sizeof(S)>::type;
  constexpr U kSign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  U bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if constexpr (kInfinity<S> != 0) {
    const U magnitude = static_cast<U>(bits & ~kSign);
    if (magnitude > static_cast<U>(kInfinity<S>)) return U(0);
    if (magnitude == 0) bits = 0;
    return static_cast<U>((bits & kSign) != 0 ? bits : ~(bits | kSign));
  } else {
    return static_cast<U>(~(std::is_signed_v<S> ? bits ^ kSign : bits));
  }
}

template <class S, class Key>
TN_DEVICE void descending_keys(int64_t n, const S* x, Key* keys) {
  for (int64_t i = first(); i < n; i += stride()) keys[i] = descending_key(x[i]);
}

// The elements at `positions` of their rows, the first k of `sorted` ones.
template <class S>
TN_DEVICE void take_positions(int64_t n, int64_t k, int64_t row, int64_t sorted, const S* x,
                              const uint32_t* positions, S* values, int32_t* indices) {
  for (int64_t i = first(); i < n; i += stride()) {
    const uint32_t position = positions[i / k * sorted + i % k];
    values[i] = x[i / k * row + position];
    indices[i] = static_cast<int32_t>(position);
  }
}

#define TN_TOP_K(S, type, Key, key)                                                               \
  TN_KERNEL(descending_keys_##type, int64_t n, const S* x, Key* keys) {                           \
    descending_keys(n, x, keys);                                                                  \
  }                                                                                               \
  TN_KERNEL(take_positions_##type, int64_t n, int64_t k, int64_t row, int64_t sorted, const S* x, \
            const uint32_t* positions, S* values, int32_t* indices) {                             \
    take_positions(n, k, row, sorted, x, positions, values, indices);                             \
  }
TN_TOP_K_TYPES(TN_TOP_K)

TN_DEVICE bool is_number(float x) { return x - x == 0; }

// Fewer than k predictions are larger than the target's; a row that is not finite tells nothing. A
// group of lanes for a row.
template <class Index>
TN_DEVICE void in_top_k(int64_t batch, int64_t classes, int64_t k, int lanes,
                        const float* predictions, const Index* targets, bool* y) {
  TN_SHARED(int64_t, part, kMostThreads);
  const int64_t groups = threads() / lanes;
  for (int64_t base = block() * groups; base < batch; base += blocks() * groups) {
    const int64_t i = base + group_of(lanes);
    const int64_t target = i < batch ? static_cast<int64_t>(targets[i]) : -1;
    const bool inside = target >= 0 && target < classes;
    const float* const row = predictions + i * classes;
    int64_t larger = 0;
    for (int64_t c = lane_of(lanes); inside && c < classes; c += lanes)
      larger += !is_number(row[c]) ? classes : row[c] > row[target] ? 1 : 0;
    larger = over_group(part, larger, lanes, [](int64_t a, int64_t b) { return a + b; });
    if (i < batch && lane_of(lanes) == 0) y[i] = inside && larger < k && larger < classes;
  }
}

TN_KERNEL(in_top_k_int32, int64_t batch, int64_t classes, int64_t k, int lanes,
          const float* predictions, const int32_t* targets, bool* y) {
  in_top_k(batch, classes, k, lanes, predictions, targets, y);
}
TN_KERNEL(in_top_k_int64, int64_t batch, int64_t classes, int64_t k, int lanes,
          const float* predictions, const int64_t* targets, bool* y) {
  in_top_k(batch, classes, k, lanes, predictions, targets, y);
}

}  // namespace treenail::gpu
