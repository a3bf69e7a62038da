// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720 appendix B.4): checksums of checkpoints, graph files and records.
// The same number on every host; the CPU's own instruction is used where it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace treenail {

// The CRC of the bytes so far (`crc`, 0 for none) followed by these.
uint32_t crc32c(const void* data, size_t bytes, uint32_t crc = 0);
// The same by tables alone: what crc32c() is tested against.
uint32_t crc32c_portable(const void* data, size_t bytes, uint32_t crc = 0);

// TFRecord stores CRCs in this form, so that the CRC of bytes that hold a CRC is no special case.
inline uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t unmask_crc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace treenail
