// SPDX-License-Identifier: Apache-2.0
// Hashes for look-up tables inside one process: neither stable between releases nor meant against
// hostile keys alone (every user compares the keys as well).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace treenail {

// The finaliser of MurmurHash3: every input bit reaches every output bit.
inline uint64_t hash_mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

inline uint64_t hash_combine(uint64_t seed, uint64_t value) {
  return hash_mix(seed * 0x9e3779b97f4a7c15ULL + value + 1);
}

inline uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = hash_combine(seed, size);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = hash_combine(hash, word);
  }
  if (size > 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, size);
    hash = hash_combine(hash, word);
  }
  return hash;
}

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace treenail
