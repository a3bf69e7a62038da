// SPDX-License-Identifier: Apache-2.0
// The HDF5 adapter as checkpoints use it: opened on first use, its statuses as Errors.
#pragma once

#include <string>
#include <string_view>

#include "framework/io/hdf5_api.h"

namespace treenail {

// Errors: Unimplemented when the adapter or libhdf5 is absent.
const Hdf5Api& hdf5_api();

// Throws what `status` says, as "cannot <doing> <path>: ...", unless it is Ok.
void check_hdf5(const Hdf5Status& status, std::string_view doing, const std::string& path);

// Owns an open file; discards it unless it was closed.
class Hdf5Handle {
 public:
  explicit Hdf5Handle(Hdf5File* file) : file_(file) {}
  ~Hdf5Handle() { discard(); }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  Hdf5File* get() const { return file_; }
  void close(Hdf5Status* status);
  void discard();

 private:
  Hdf5File* file_;
};

}  // namespace treenail
