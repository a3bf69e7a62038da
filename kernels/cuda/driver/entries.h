// SPDX-License-Identifier: Apache-2.0
// Tables of a library's functions, filled by dlopen() when they are first asked for: the plugin is
// linked with no library of CUDA, and opens where there is none. A table is a struct with a member
// per name of its *_entries.inc, typed by the vendor's header.
#pragma once

#include <span>
#include <string>

namespace treenail::cuda {

struct Entry {
  const char* name;
  void** place;
};

// Fills the table from the library `soname`. Errors: FailedPrecondition: "<what> is not there:
// <soname> cannot be loaded: ..."; where it lacks a function, naming it, "is older than <wanted>".
void load_entries(const char* what, const char* soname, const std::string& wanted,
                  std::span<const Entry> entries);

}  // namespace treenail::cuda

// Within a function that fills `table`: the rows of entries.
#define TN_CUDA_ROW(name) TN_CUDA_ROW_OF(name)
#define TN_CUDA_ROW_OF(name) {#name, reinterpret_cast<void**>(&table.name)},
