// SPDX-License-Identifier: Apache-2.0
// The 512 bytes before the HDF5 part of a checkpoint (HDF5 calls them the user block and skips
// them): they tell a whole, undamaged checkpoint from everything else before libhdf5 sees a byte of
// it. All numbers are little-endian:
//   0 magic (8), 8 format (u32), 12 zero (u32), 16 bytes that follow the block (u64), 24 their
//   CRC-32C (u32), 28 zeros, 508 CRC-32C of bytes 0 to 507 (u32).
#pragma once

#include <cstdint>
#include <string>

#include "framework/io/file.h"

namespace treenail {

inline constexpr int64_t kFrameBytes = 512;

// Writes the block for what the file holds behind it.
void seal_frame(const FileDescriptor& file, const std::string& path);

// Reads the whole file. False when it has no such block at all and `allow_foreign`. Errors:
// DataLoss (truncated, damaged, no checkpoint), InvalidArgument (HDF5, but without the block),
// FailedPrecondition (a later format).
bool check_frame(const FileDescriptor& file, const std::string& path, bool allow_foreign);

}  // namespace treenail
