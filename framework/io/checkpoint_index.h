// SPDX-License-Identifier: Apache-2.0
// Checkpoints of several files: each shard is a checkpoint by itself, written by whoever holds its
// tensors; the index, written last, names the shards, tells by length and checksum which writing of
// them it means, and says where each tensor and each part lies. It is a checkpoint file of kind
// kIndex, so that all that holds of these (whole or not there, checked, readable by h5py) holds of
// it. See docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/io/checkpoint_file.h"
#include "framework/io/checkpoint_frame.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/tensor_slice.h"

namespace treenail {

struct CheckpointIndex {
  struct Shard {
    std::string file;  // in the directory of the index
    Frame frame;
  };
  struct Part {
    std::string tensor;
    DType dtype = DType::kInvalid;
    TensorSlice slice;
    int32_t shard = 0;
  };
  std::vector<Shard> shards;
  std::vector<Part> parts;  // sorted by tensor
};

// What `file`, of kind kIndex, says. Errors: DataLoss (it contradicts itself).
CheckpointIndex read_checkpoint_index(const CheckpointFile& file, const std::string& path);

// Checks each of `shards`, paths of complete files in the directory of `path`, and writes the index
// that makes them one checkpoint. Until then nothing has that name, or what had it before.
// poll() is called between files. Errors: InvalidArgument (no shards, another directory, a tensor
// in two of them, parts that overlap), those of reading a shard and of writing.
void index_checkpoints(std::span<const std::string> shards, const std::string& path,
                       FunctionRef<void()> poll);

}  // namespace treenail
