// SPDX-License-Identifier: Apache-2.0
// Written from the descriptions of the three functions; vectors in
// tests/cases/string_conversion.py.
#include "kernels/host/strings/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

#include "framework/base/byte_order.h"

namespace treenail::host {
namespace {

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  swap_units(&value, 1, sizeof value);
  return value;
}

uint64_t word(const char* at) { return load<uint64_t>(at); }

// --- FarmHash ---------------------------------------------------------------------------------

constexpr uint64_t kPrime0 = 0xc3a5c85c97cb3127, kPrime1 = 0xb492b66fbe98f273,
                   kPrime2 = 0x9ae16a3b2f90404f;

uint64_t fold(uint64_t x) { return x ^ (x >> 47); }

uint64_t mix(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = fold((u ^ v) * factor);
  return fold((v ^ a) * factor) * factor;
}

uint64_t farm_up_to_16(const char* s, uint64_t n) {
  const uint64_t factor = kPrime2 + n * 2;
  if (n >= 8) {
    const uint64_t a = word(s) + kPrime2;
    const uint64_t b = word(s + n - 8);
    return mix(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return mix(n + (uint64_t{load<uint32_t>(s)} << 3), load<uint32_t>(s + n - 4), factor);
  if (n == 0) return kPrime2;
  const auto byte = [s](uint64_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  const uint64_t y = byte(0) + (byte(n >> 1) << 8);
  const uint64_t z = n + (uint64_t{byte(n - 1)} << 2);
  return fold(y * kPrime2 ^ z * kPrime0) * kPrime2;
}

uint64_t farm_up_to_32(const char* s, uint64_t n) {
  const uint64_t factor = kPrime2 + n * 2;
  const uint64_t a = word(s) * kPrime1;
  const uint64_t b = word(s + 8);
  const uint64_t c = word(s + n - 8) * factor;
  const uint64_t d = word(s + n - 16) * kPrime2;
  return mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kPrime2, 18) + c,
             factor);
}

uint64_t farm_up_to_64(const char* s, uint64_t n) {
  const uint64_t factor = kPrime2 + n * 2;
  const uint64_t a = word(s) * kPrime2;
  const uint64_t b = word(s + 8);
  const uint64_t c = word(s + n - 8) * factor;
  const uint64_t d = word(s + n - 16) * kPrime2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = mix(y, a + std::rotr(b + kPrime2, 18) + c, factor);
  const uint64_t e = word(s + 16) * factor;
  const uint64_t f = word(s + 24);
  const uint64_t g = (y + word(s + n - 32)) * factor;
  const uint64_t h = (z + word(s + n - 24)) * factor;
  return mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

Pair weak_32(const char* s, uint64_t a, uint64_t b) {
  a += word(s);
  b = std::rotr(b + a + word(s + 24), 21);
  const uint64_t c = a;
  a += word(s + 8) + word(s + 16);
  b += std::rotr(a, 44);
  return {a + word(s + 24), b + c};
}

// The state over blocks of 64 bytes.
struct FarmState {
  uint64_t x, y, z;
  Pair v, w;

  // The last block weighs some words more.
  void take(const char* s, uint64_t factor, uint64_t weight) {
    x = std::rotr(x + y + v.first + word(s + 8), 37) * factor;
    y = std::rotr(y + v.second + word(s + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word(s + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = weak_32(s, v.second * factor, x + w.first);
    w = weak_32(s + 32, z + w.second, y + word(s + 16));
    std::swap(z, x);
  }
};

uint64_t farm_long(const char* s, uint64_t n) {
  constexpr uint64_t kSeed = 81;
  FarmState state{};
  state.x = kSeed * kPrime2 + word(s);
  state.y = kSeed * kPrime1 + 113;
  state.z = fold(state.y * kPrime2 + 113) * kPrime2;
  const char* const end = s + (n - 1) / 64 * 64;
  const char* const last = s + n - 64;
  for (; s != end; s += 64) state.take(s, kPrime1, 1);
  const uint64_t factor = kPrime1 + ((state.z & 0xff) << 1);
  state.w.first += (n - 1) & 63;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.take(last, factor, 9);
  return mix(mix(state.v.first, state.w.first, factor) + fold(state.y) * kPrime0 + state.z,
             mix(state.v.second, state.w.second, factor) + state.x, factor);
}

// --- SipHash ----------------------------------------------------------------------------------

struct SipState {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(uint64_t message) {
    v3 ^= message;
    round();
    round();
    v0 ^= message;
  }
};

}  // namespace

uint64_t fingerprint64(std::string_view bytes) {
  const uint64_t n = bytes.size();
  if (n <= 16) return farm_up_to_16(bytes.data(), n);
  if (n <= 32) return farm_up_to_32(bytes.data(), n);
  if (n <= 64) return farm_up_to_64(bytes.data(), n);
  return farm_long(bytes.data(), n);
}

uint64_t sip_hash(uint64_t key0, uint64_t key1, std::string_view bytes) {
  SipState state{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
                 key1 ^ 0x7465646279746573};
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) state.take(word(bytes.data() + at));
  uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
  for (size_t i = whole; i < bytes.size(); ++i)
    last |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * (i - whole));
  state.take(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

uint64_t murmur_hash64a(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t h = seed ^ (bytes.size() * kFactor);
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    uint64_t k = word(bytes.data() + at) * kFactor;
    k = (k ^ (k >> kShift)) * kFactor;
    h = (h ^ k) * kFactor;
  }
  if (whole != bytes.size()) {
    uint64_t last = 0;
    for (size_t i = bytes.size(); i-- > whole;) last = last << 8 | static_cast<uint8_t>(bytes[i]);
    h = (h ^ last) * kFactor;
  }
  h = (h ^ (h >> kShift)) * kFactor;
  return h ^ (h >> kShift);
}

}  // namespace treenail::host
