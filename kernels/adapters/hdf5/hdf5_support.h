// SPDX-License-Identifier: Apache-2.0
// Inside the HDF5 adapter: identifiers that close themselves, failures with HDF5's own words, and
// the entry into a piece of work, which takes the locks and keeps libhdf5's error printer quiet for
// its duration.
#pragma once

#define H5_USE_18_API  // the signatures that every version since 1.8 still offers
#include <hdf5.h>

// hdf5.h calls a version check that ends the process when the library's release is not the
// header's; within one soname releases are compatible.
#undef H5CHECK
#define H5CHECK

#include <cstdint>
#include <new>
#include <string>

#include "framework/base/error.h"
#include "framework/io/hdf5_api.h"
#include "framework/tensor/dtype.h"

namespace treenail::hdf5 {

// Travels inside the adapter only; `run` turns it into a Hdf5Status.
struct Failure {
  Code code;
  std::string text;
};

// Throws Failure with the deepest message of HDF5's error stack.
[[noreturn]] void fail(Code code, const char* doing);
Code code_of_errno(int error);

// One HDF5 identifier; `Close` is its kind's closing function.
template <herr_t (*Close)(hid_t)>
class Id {
 public:
  Id() = default;
  explicit Id(hid_t id) : id_(id) {}
  Id(Id&& other) noexcept : id_(other.release()) {}
  Id& operator=(Id&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = other.release();
    }
    return *this;
  }
  ~Id() { reset(); }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  hid_t release() {
    const hid_t id = id_;
    id_ = -1;
    return id;
  }
  void reset() {
    if (id_ >= 0) Close(id_);
    id_ = -1;
  }

 private:
  hid_t id_ = -1;
};

using FileId = Id<H5Fclose>;
using GroupId = Id<H5Gclose>;
using DatasetId = Id<H5Dclose>;
using SpaceId = Id<H5Sclose>;
using TypeId = Id<H5Tclose>;
using AttributeId = Id<H5Aclose>;
using ListId = Id<H5Pclose>;

template <class SomeId>
SomeId checked(hid_t id, Code code, const char* doing) {
  if (id < 0) fail(code, doing);
  return SomeId(id);
}

inline void check(herr_t result, Code code, const char* doing) {
  if (result < 0) fail(code, doing);
}

// Locks (outer first), then the error printer of this thread or process off; undone in reverse.
class Entry {
 public:
  Entry();
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  bool outer_;
  unsigned new_style_ = 1;
  H5E_auto2_t printer_ = nullptr;
  H5E_auto1_t old_printer_ = nullptr;
  void* printer_data_ = nullptr;
};

void set_outer_lock(void (*lock)(void*), void (*unlock)(void*), void* argument);

void put(Hdf5Status* status, Code code, const char* text);

// Runs `work` inside an Entry; no exception leaves.
template <class Work>
void run(Hdf5Status* status, Work&& work) {
  put(status, Code::kOk, "");
  try {
    const Entry entry;
    work();
  } catch (const Failure& failure) {
    put(status, failure.code, failure.text.c_str());
  } catch (const std::bad_alloc&) {
    put(status, Code::kResourceExhausted, "out of memory");
  } catch (...) {
    put(status, Code::kInternal, "unexpected exception in the HDF5 adapter");
  }
}

// --- types (hdf5_types.cc) ---

// Of plain dtypes: little-endian in the file, this host's in memory. Fails for others.
TypeId file_type(DType dtype);
TypeId memory_type(DType dtype);
// Of strings: NUL-terminated UTF-8, or, for bytes that are not such text, a list of bytes.
TypeId text_type();
TypeId bytes_type();
// The dtype a dataset's type stands for; kInvalid when none does, and then *text says what it is.
// `declared`: the dataset's attribute "treenail_dtype", or "".
DType dtype_of_type(hid_t type, const std::string& declared, std::string* text);

}  // namespace treenail::hdf5
