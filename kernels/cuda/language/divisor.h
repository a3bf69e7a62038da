// SPDX-License-Identifier: Apache-2.0
// Division by a number that the host knows before a launch, without the many instructions of a
// GPU's own: by multiplication (Granlund and Montgomery, "Division by invariant integers using
// multiplication", 1994).
#pragma once

#include <cstdint>

namespace treenail::gpu {

__extension__ using Product = unsigned __int128;

// i / size = (i * multiplier / 2^64 + i) / 2^shift for i below 2^63; for i below 2^31 the short
// ones do with 2^32.
struct Divisor {
  int64_t size = 1;
  uint64_t multiplier = 1;
  uint32_t shift = 0;
  uint32_t short_multiplier = 1, short_shift = 0;
};

// Of size 1 at least.
inline Divisor divisor_of(int64_t size) {
  Divisor d;
  d.size = size;
  const auto given = static_cast<uint64_t>(size);
  while ((uint64_t{1} << d.shift) < given) ++d.shift;
  const Product rest = (uint64_t{1} << d.shift) - given;
  d.multiplier = static_cast<uint64_t>((rest << 64) / given + 1);
  if (d.shift < 32) {
    d.short_multiplier = static_cast<uint32_t>((rest << 32) / given + 1);
    d.short_shift = d.shift;
  } else {  // i / 2^31 = 0
    d.short_multiplier = 0;
    d.short_shift = 31;
  }
  return d;
}

#if defined(TN_GPU)  // gpu.h came before
TN_DEVICE int64_t quotient(const Divisor& d, int64_t i) {
  const auto u = static_cast<uint64_t>(i);
  if (u >> 31 == 0) {
    const auto low = static_cast<uint32_t>(u);
    const auto high = static_cast<uint32_t>(u * d.short_multiplier >> 32);
    return (high + low) >> d.short_shift;
  }
  const auto high = static_cast<uint64_t>(static_cast<Product>(u) * d.multiplier >> 64);
  return static_cast<int64_t>((high + u) >> d.shift);
}

// i = quotient * size + rest
struct Divided {
  int64_t quotient, rest;
};
TN_DEVICE Divided divided(const Divisor& d, int64_t i) {
  const int64_t q = quotient(d, i);
  return {q, i - q * d.size};
}
#endif

}  // namespace treenail::gpu
