// SPDX-License-Identifier: Apache-2.0
// What the HDF5 adapter (kernels/adapters/hdf5) offers its one user, checkpoint.cc: datasets of one
// file, by path. Plain C types, status out-parameters; neither an exception nor memory ownership
// crosses. Calls from several threads are serialised inside. No process-wide setting of libhdf5 is
// left changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/adapter.h"

namespace treenail {

inline constexpr int kHdf5MaxRank = 32;  // H5S_MAX_RANK

// Written by every call that takes one: code 0, or a canonical error code and a sentence without
// the file's name.
struct Hdf5Status {
  int32_t code;
  char text[512];
};

struct Hdf5Bytes {
  const char* bytes;
  size_t size;
};

// One dataset as listed. Pointers are valid during the visit only.
struct Hdf5Dataset {
  const char* path;  // "layer1/kernel"
  int32_t dtype;     // the framework's dtype number; 0: the file's type or rank has no counterpart
  int32_t rank;
  int64_t dims[kHdf5MaxRank];
  const char* type_text;  // "float32", or what the file holds where dtype is 0
  const char* name;       // attribute "treenail_name"; null: the path is the name
  const char* slice;      // attribute "treenail_slice"; null: the dataset is a whole tensor
};

// A box of a dataset, and where in an array in memory it lies. All arrays have `rank` elements.
struct Hdf5Box {
  int32_t rank;
  const int64_t* start;  // in the dataset
  const int64_t* count;
  const int64_t* memory_dims;  // of the array in memory
  const int64_t* memory_start;
};

struct Hdf5File;

struct Hdf5Api {
  AdapterHeader header;

  // Of the library that is loaded.
  void (*version)(uint32_t* major, uint32_t* minor, uint32_t* release);
  // 1 when libhdf5 was built with a lock of its own.
  int32_t (*has_lock)(void);
  // Around every piece of work, lock(argument) and unlock(argument) are called as well, outermost.
  // Nulls: no such lock.
  void (*set_outer_lock)(void (*lock)(void*), void (*unlock)(void*), void* argument);

  // An empty HDF5 file through a descriptor open for reading and writing; the first `user_block`
  // bytes are left to the caller. The descriptor stays the caller's and must stay open until
  // close() or discard().
  Hdf5File* (*create)(int fd, uint64_t user_block, Hdf5Status* status);
  // An existing file through a descriptor open for reading.
  Hdf5File* (*open)(int fd, Hdf5Status* status);
  // Frees *file. What was written is in the file only when this and every write before it
  // succeeded.
  void (*close)(Hdf5File* file, Hdf5Status* status);
  // Frees *file whatever becomes of its contents.
  void (*discard)(Hdf5File* file);

  // One dataset with groups along its path. `name` and `slice` become attributes unless null.
  // Elements of dtype string are an array of Hdf5Bytes, all others lie as in a tensor.
  void (*write)(Hdf5File* file, const Hdf5Dataset* dataset, const void* elements,
                Hdf5Status* status);
  void (*list)(Hdf5File* file, void (*visit)(void* argument, const Hdf5Dataset* dataset),
               void* argument, Hdf5Status* status);
  // `elements` is the array in memory that the box lies in; its dtype is the dataset's.
  void (*read)(Hdf5File* file, const char* path, int32_t dtype, const Hdf5Box* box, void* elements,
               Hdf5Status* status);
  // Strings of the box in row-major order, numbered from 0. The bytes are valid during the visit
  // only.
  void (*read_strings)(Hdf5File* file, const char* path, const Hdf5Box* box,
                       void (*visit)(void* argument, int64_t index, const char* bytes, size_t size),
                       void* argument, Hdf5Status* status);
};

}  // namespace treenail
