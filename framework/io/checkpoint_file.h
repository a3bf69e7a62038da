// SPDX-License-Identifier: Apache-2.0
// One file of tensors of a checkpoint: all of it, or a shard. Checked as a whole before libhdf5
// sees a byte; its datasets are listed once; tensors are read straight into their memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_frame.h"
#include "framework/io/file.h"

namespace treenail {

class CheckpointFile {
 public:
  // `path` is for messages. Errors: as CheckpointReader's.
  CheckpointFile(FileDescriptor file, const std::string& path, bool allow_foreign);
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  // Nothing for a foreign file.
  const std::optional<Frame>& frame() const;
  // Sorted by name.
  const std::vector<CheckpointReader::Entry>& entries() const;
  // Copies what the file has of `wanted`, a part of that tensor, to its place in `result`, which
  // has the extents of `wanted`: the number of elements. Errors: Unimplemented (foreign type),
  // DataLoss.
  int64_t read(std::string_view name, const TensorSlice& wanted, Tensor* result) const;
  // Errors: Unimplemented, as read().
  void check_dtype(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The place of `name` among entries sorted by name, or -1.
int64_t entry_position(const std::vector<CheckpointReader::Entry>& entries, std::string_view name);

}  // namespace treenail
