// SPDX-License-Identifier: Apache-2.0
// Checkpoints: named tensors in one HDF5 file, which h5py and h5dump read as well. A tensor
// "layer/kernel" is the dataset kernel in the group layer. Where a name is also the beginning of
// another ("w" and its slot "w/Momentum"), the later of the two places gets a "+", and the
// attribute treenail_name holds the name; treenail_dtype holds the dtype of every dataset.
//
// A checkpoint may also be several such files, its shards, and an index that names them and has the
// checkpoint's name (checkpoint_index.h); a reader takes either.
//
// A checkpoint appears under its name only when it is complete and on disk. Reading checks length
// and checksum of the whole file before libhdf5 sees a byte. libhdf5 lies behind an adapter:
// without it everything here throws Unimplemented.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"
#include "framework/tensor/tensor_slice.h"

namespace treenail {

class CheckpointWriter {
 public:
  // Errors: NotFound (no such directory), PermissionDenied, ResourceExhausted (disk full),
  // Unimplemented (no HDF5), ...
  explicit CheckpointWriter(const std::string& path);
  // Without finish() nothing is left, and what was at `path` stays.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Written at once; the tensor is not kept. Errors: InvalidArgument (name empty, with a zero byte
  // or too long; given before; dtype resource or variant), ResourceExhausted (disk full).
  void add(std::string_view name, const Tensor& tensor);
  // A part of tensor `name`. All parts have one dtype and full shape and do not overlap;
  // InvalidArgument otherwise.
  void add_slice(std::string_view name, const Tensor& tensor, const TensorSlice& slice);
  void finish();
  // As finish(), of a file that is the index of others: of use to checkpoint_index.cc alone.
  void finish_index();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All at once, in the order of names: the same tensors give the same bytes.
void write_checkpoint(const std::string& path,
                      std::span<const std::pair<std::string, Tensor>> tensors);

class CheckpointReader {
 public:
  struct Entry {
    std::string name;
    DType dtype = DType::kInvalid;  // kInvalid: only in foreign files; reading it is Unimplemented
    Shape shape;
    std::vector<TensorSlice> slices;  // the parts it was saved as; empty: as a whole
  };

  // allow_foreign: also HDF5 files without Treenail's length and checksum. Only for files you
  // trust. Of several shards, each is looked for and held to the index here, and read as a whole to
  // be checked when the first of its tensors is. Errors: NotFound, PermissionDenied, DataLoss
  // (truncated, damaged, no checkpoint, a shard that is missing or another save's),
  // InvalidArgument (foreign, not allowed), ...
  explicit CheckpointReader(const std::string& path, bool allow_foreign = false);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  const std::string& path() const;
  // Sorted by name.
  const std::vector<Entry>& entries() const;
  const Entry* find(std::string_view name) const;
  // Errors: NotFound, naming what is there.
  const Entry& get(std::string_view name) const;

  // May be called from several threads. Errors: NotFound (name, or a part that was never saved),
  // Unimplemented (foreign type), InvalidArgument (rows or slice outside the tensor),
  // ResourceExhausted, DataLoss.
  Tensor read(std::string_view name) const;
  Tensor read_rows(std::string_view name, int64_t begin, int64_t end) const;
  Tensor read_slice(std::string_view name, const TensorSlice& slice) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Around every use of libhdf5, lock(argument) and unlock(argument) are called, outermost. Where
// hdf5_has_lock() is false, everybody who uses the one libhdf5 of the process has to share a lock:
// the Python module passes h5py's (h5py._objects.phil) here when h5py is loaded. To be called
// before checkpoints are in use; nulls end it. Errors: Unimplemented (no HDF5).
bool hdf5_has_lock();
void set_hdf5_lock(void (*lock)(void*), void (*unlock)(void*), void* argument);

// "1.10.8": the HDF5 library loaded. Errors: Unimplemented.
std::string hdf5_version();

}  // namespace treenail
