// SPDX-License-Identifier: Apache-2.0
// 64-bit hashes of bytes that never change: they stand in models, as numbers of buckets.
#pragma once

#include <cstdint>
#include <string_view>

namespace treenail::host {

// FarmHash's Fingerprint64 (Geoff Pike, 2014; farmhashna::Hash64).
uint64_t fingerprint64(std::string_view bytes);
// SipHash-2-4 (Aumasson, Bernstein: SipHash: a fast short-input PRF, 2012).
uint64_t sip_hash(uint64_t key0, uint64_t key1, std::string_view bytes);
// MurmurHash64A (Austin Appleby, 2008).
uint64_t murmur_hash64a(std::string_view bytes, uint64_t seed);

}  // namespace treenail::host
