// SPDX-License-Identifier: Apache-2.0
// Inside the HDF5 adapter: an open file, what is written into it (hdf5_write.cc) and read from it
// (hdf5_read.cc).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "framework/io/hdf5_api.h"
#include "kernels/adapters/hdf5/hdf5_driver.h"
#include "kernels/adapters/hdf5/hdf5_support.h"

namespace treenail {

struct Hdf5File {
  hdf5::Channel channel;  // outlives id
  hdf5::FileId id;
  std::set<std::string> groups;  // made so far, when writing
};

namespace hdf5 {

inline constexpr const char* kDTypeAttribute = "treenail_dtype";
inline constexpr const char* kNameAttribute = "treenail_name";
inline constexpr const char* kSliceAttribute = "treenail_slice";

// In `status`, why a lock was not had.
void put_lock_error(Hdf5Status* status, int error);

// run() on a file: what the system refused is the failure, whatever libhdf5 made of it.
template <class Work>
void run_on(const Hdf5File* file, Hdf5Status* status, Work&& work) {
  run(status, work);
  if (const int error = file->channel.error; error != 0) {
    put(status, code_of_errno(error), std::strerror(error));
  }
  if (const int error = file->channel.lock_error; error != 0) put_lock_error(status, error);
}

inline int64_t elements_of(int rank, const int64_t* dims) {
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) elements *= dims[i];
  return elements;
}

// Strings are moved in batches of whole rows of the first axis, so that memory stays small beside
// the tensor's own.
inline int64_t rows_at_once(int rank, const int64_t* dims) {
  constexpr int64_t kStringsAtOnce = 8192;
  const int64_t row = rank == 0 ? 1 : elements_of(rank - 1, dims + 1);
  return std::max<int64_t>(1, kStringsAtOnce / std::max<int64_t>(row, 1));
}

// As in hdf5_api.h.
void write(Hdf5File* file, const Hdf5Dataset* tensor, const void* elements, Hdf5Status* status);
void list(Hdf5File* file, void (*visitor)(void*, const Hdf5Dataset*), void* argument,
          Hdf5Status* status);
void read(Hdf5File* file, const char* path, int32_t dtype, const Hdf5Box* box, void* elements,
          Hdf5Status* status);
void read_strings(Hdf5File* file, const char* path, const Hdf5Box* box,
                  void (*visit)(void*, int64_t, const char*, size_t), void* argument,
                  Hdf5Status* status);

}  // namespace hdf5
}  // namespace treenail
