// SPDX-License-Identifier: Apache-2.0
// The 512 bytes before the HDF5 part of a checkpoint (HDF5 calls them the user block and skips
// them): they tell a whole, undamaged checkpoint from everything else before libhdf5 sees a byte of
// it. All numbers are little-endian:
//   0 magic (8), 8 format (u32), 12 kind (u32), 16 bytes that follow the block (u64), 24 their
//   CRC-32C (u32), 28 zeros, 508 CRC-32C of bytes 0 to 507 (u32).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/io/file.h"

namespace treenail {

inline constexpr int64_t kFrameBytes = 512;

// What a file holds: tensors, or the names of the files that hold them (checkpoint_index.h).
enum class FrameKind : uint32_t { kTensors = 0, kIndex = 1 };

struct Frame {
  FrameKind kind = FrameKind::kTensors;
  uint64_t bytes = 0;     // that follow the block
  uint32_t checksum = 0;  // of these
  friend bool operator==(const Frame&, const Frame&) = default;
};

// Writes the block for what the file holds behind it.
void seal_frame(const FileDescriptor& file, const std::string& path, FrameKind kind);

// The block, which is undamaged, of a file as long as it says; nothing when it has no such block at
// all and `allow_foreign`. Errors: DataLoss (truncated, damaged, no checkpoint), InvalidArgument
// (HDF5, but without the block), FailedPrecondition (a later format).
std::optional<Frame> read_frame(const FileDescriptor& file, const std::string& path,
                                bool allow_foreign);

// read_frame(), and the checksum of all that follows, which reads the whole file.
std::optional<Frame> check_frame(const FileDescriptor& file, const std::string& path,
                                 bool allow_foreign);

}  // namespace treenail
