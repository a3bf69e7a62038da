// SPDX-License-Identifier: Apache-2.0
// The allocator's size classes: every request is rounded up to one, and a freed block serves the
// next request of its class. Up to 1 KiB they are 64 bytes apart, up to 1 MiB a quarter of a power
// of two; beyond, blocks are whole 2 MiB pages, and above eight of them an eighth of a power of two
// apart. So at most 25 % (large: 12.5 %) is rounding.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace treenail::size_classes {

inline constexpr size_t kHugePage = size_t{2} << 20;
inline constexpr size_t kLargestSmall = size_t{32} << 10;  // cached per thread up to here
inline constexpr size_t kLargestMedium = size_t{1} << 20;  // from malloc up to here
inline constexpr size_t kLargest = size_t{1} << 60;        // more is no size
inline constexpr int kFineClasses = 16;                    // of 64, 128, ..., 1024 bytes
inline constexpr int kMediumEnd = kFineClasses + 10 * 4;   // classes below it hold up to 1 MiB
inline constexpr int kClasses = kMediumEnd + 8 + (40 - 3) * 8;

// Steps between powers of two, `1 << log_steps` of them: the class of n > 2^first, counted from 0.
constexpr int geometric_index(uint64_t n, int first, int log_steps) {
  const int exponent = std::bit_width(n - 1) - 1;
  const auto step = static_cast<int>((n - 1) >> (exponent - log_steps)) & ((1 << log_steps) - 1);
  return ((exponent - first) << log_steps) + step;
}

constexpr uint64_t geometric_size(int index, int first, int log_steps) {
  const int exponent = first + (index >> log_steps);
  const auto step = static_cast<uint64_t>(index & ((1 << log_steps) - 1));
  return ((uint64_t{1} << log_steps) + step + 1) << (exponent - log_steps);
}

// The class of a request of `bytes` <= kLargest.
constexpr int index_of(size_t bytes) {
  if (bytes <= 64) return 0;
  if (bytes <= 1024) return static_cast<int>((bytes - 1) / 64);
  if (bytes <= kLargestMedium) return kFineClasses + geometric_index(bytes, 10, 2);
  const uint64_t pages = (bytes + kHugePage - 1) / kHugePage;
  if (pages <= 8) return kMediumEnd + static_cast<int>(pages) - 1;
  return kMediumEnd + 8 + geometric_index(pages, 3, 3);
}

// Bytes of a block of class `index`.
constexpr size_t size_of(int index) {
  if (index < kFineClasses) return static_cast<size_t>(index + 1) * 64;
  if (index < kMediumEnd) return geometric_size(index - kFineClasses, 10, 2);
  const int large = index - kMediumEnd;
  if (large < 8) return static_cast<size_t>(large + 1) * kHugePage;
  return geometric_size(large - 8, 3, 3) * kHugePage;
}

inline constexpr int kSmallEnd = index_of(kLargestSmall) + 1;

static_assert(size_of(index_of(kLargestSmall)) == kLargestSmall);
static_assert(size_of(index_of(kLargestMedium)) == kLargestMedium);
static_assert(index_of(kLargestMedium) == kMediumEnd - 1);
static_assert(index_of(kLargest) < kClasses);

}  // namespace treenail::size_classes
