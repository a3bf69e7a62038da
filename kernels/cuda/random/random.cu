// SPDX-License-Identifier: Apache-2.0
// Random numbers: the CPU's streams and formulas (elementwise/distributions.h), a group of outputs
// by each thread. `place` counts where there are no seeds (seeds.h).
#include "kernels/cuda/language/gpu.h"

#include "framework/base/philox_words.h"
#include "kernels/cuda/random/seeds.h"
#include "kernels/elementwise/distributions.h"
#include "kernels/elementwise/half.h"

namespace treenail::gpu {

template <class T>  // in which numbers of type T are computed
using Computed = std::conditional_t<sizeof(T) == 2, float, T>;

template <class T>
TN_DEVICE philox::Words seeded_by(const void* seeds) {
  const T* const pair = static_cast<const T*>(seeds);
  return philox::seeded(static_cast<uint64_t>(static_cast<int64_t>(pair[0])),
                        static_cast<uint64_t>(static_cast<int64_t>(pair[1])));
}

TN_DEVICE philox::Words stream_of(const philox::Words& place, const void* seeds, Seeds kind) {
  switch (kind) {
    case Seeds::kInt32:
      return seeded_by<int32_t>(seeds);
    case Seeds::kUInt32:
      return seeded_by<uint32_t>(seeds);
    case Seeds::k64Bits:
      return seeded_by<int64_t>(seeds);
    case Seeds::kStream:
      return *static_cast<const philox::Words*>(seeds);
    case Seeds::kNone:
      break;
  }
  return place;
}

template <class T>
TN_DEVICE T stored(Computed<T> x) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(x);
  } else {
    return x;
  }
}

template <class T>
TN_DEVICE Computed<T> unit(const uint32_t* words, int i) {
  if constexpr (std::is_same_v<T, Float16>) {
    return random::unit_float16(words[i]);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return random::unit_bfloat16(words[i]);
  } else if constexpr (std::is_same_v<T, double>) {
    return random::unit_double(words[2 * i], words[2 * i + 1]);
  } else {
    return random::unit_float(words[i]);
  }
}

// draw(group, out) gives a group's outputs; the last group may be more than is wanted.
template <class T, class Draw>
TN_DEVICE void fill_groups(int64_t n, T* y, const Draw& draw) {
  constexpr int kGroup = random::kGroup<T>;
  for (int64_t group = first(); group * kGroup < n; group += stride()) {
    Computed<T> out[kGroup];
    draw(static_cast<uint64_t>(group), out);
    for (int i = 0; i < kGroup; ++i) {
      if (group * kGroup + i < n) y[group * kGroup + i] = stored<T>(out[i]);
    }
  }
}

template <class T>
TN_DEVICE void uniform(int64_t n, const philox::Words& stream, T* y) {
  fill_groups(n, y, [&](uint64_t group, Computed<T>* out) {
    uint32_t words[4];
    philox::block(stream, group, words);
    for (int i = 0; i < random::kGroup<T>; ++i) out[i] = unit<T>(words, i);
  });
}

template <class T>
TN_DEVICE void normal(int64_t n, const philox::Words& stream, T* y) {
  fill_groups(n, y, [&](uint64_t group, Computed<T>* out) {
    constexpr int kGroup = random::kGroup<T>;
    uint32_t words[4];
    philox::block(stream, group, words);
    for (int i = 0; i < kGroup; i += 2) random::normal_pair(words + i * 4 / kGroup, out + i);
  });
}

template <class T>
TN_DEVICE void truncated_normal(int64_t n, const philox::Words& stream, T* y) {
  fill_groups(n, y, [&](uint64_t group, Computed<T>* out) {
    const auto block = [&](uint64_t at, uint32_t* words) { philox::block(stream, at, words); };
    random::truncated_group(block, group * random::kRegion<T>, out);
  });
}

template <class T>
TN_DEVICE void uniform_int(int64_t n, const philox::Words& stream, T low, T high, T* y) {
  fill_groups(n, y, [&](uint64_t group, T* out) {
    uint32_t words[4];
    philox::block(stream, group, words);
    for (int i = 0; i < random::kGroup<T>; ++i) out[i] = random::uniform_int(words, i, low, high);
  });
}

#define TN_RANDOM(distribution, T, name)                                                       \
  TN_KERNEL(random_##distribution##_##name, int64_t n, philox::Words place, const void* seeds, \
            Seeds kind, T* y) {                                                                \
    distribution(n, stream_of(place, seeds, kind), y);                                         \
  }
#define TN_REAL(T, name)      \
  TN_RANDOM(uniform, T, name) \
  TN_RANDOM(normal, T, name)  \
  TN_RANDOM(truncated_normal, T, name)
TN_REAL(float, float32)
TN_REAL(double, float64)
TN_REAL(Float16, float16)
TN_REAL(BFloat16, bfloat16)

#define TN_INT(T, name)                                                                       \
  TN_KERNEL(random_int_##name, int64_t n, philox::Words place, const void* seeds, Seeds kind, \
            T low, T high, T* y) {                                                            \
    uniform_int(n, stream_of(place, seeds, kind), low, high, y);                              \
  }
TN_INT(int32_t, int32)
TN_INT(int64_t, int64)

TN_KERNEL(random_stream, philox::Words place, philox::Words* y) {
  if (first() == 0) *y = place;
}

}  // namespace treenail::gpu
