// SPDX-License-Identifier: Apache-2.0
// Adapters: one shared library per external library (BLAS, oneDNN, HDF5, ...), opened on first use,
// so that libtreenail itself needs libc alone. An adapter exports one C symbol,
//   extern "C" const void* treenail_adapter(void);
// which returns a table of C functions that begins with AdapterHeader. What follows the header is
// agreed between the adapter and its one user in a header both include; no exception, C++ type or
// allocator crosses. Also here: where Treenail's own libraries lie (the kernel libraries are found
// the same way).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treenail {

// What every version of Treenail reads of every version's adapters: it never changes.
struct AdapterHeader {
  uint32_t struct_size;  // of the whole table, in bytes
  // build_info::kVersion where the adapter was built. Tables belong to one version: an adapter of
  // another is refused, whatever its table. The size tells builds of one version apart.
  const char* version;
};

struct AdapterRequest {
  const char* name;      // "hdf5": the library is libtreenail-hdf5.so
  uint32_t struct_size;  // of the table
  const char* purpose;   // "checkpoints": completes "... is needed for checkpoints"
  const char* packages;  // of the external library: "libhdf5 (Debian: libhdf5-103-1, Fedora: hdf5)"
  // Which of Treenail's packages has it, where that is not the library's: "grpc".
  const char* part = nullptr;
};

// The adapter's table, which stays valid until the process ends. The outcome, good or bad, is
// remembered. Errors: Unimplemented (absent, its external library is absent, or of another
// version), naming feature and file, and the package to install.
const void* open_adapter(const AdapterRequest& request);
// The same, but null instead of an Error; then *why (when not null) says what is missing. For
// features with a fallback.
const void* try_open_adapter(const AdapterRequest& request, std::string* why = nullptr);

// What a library that dlopen() opened is instead of an adapter of this version: "of Treenail 0.9.0,
// this libtreenail of 1.0.0"; "" when it is one.
std::string adapter_difference(void* library);

// What to install of Treenail itself: "version 1.0.0 (Debian: libtreenail1, Fedora:
// treenail-libs)"; of a part that has a package of its own: "(Debian: libtreenail1-grpc, Fedora:
// treenail-grpc)".
std::string version_and_package(const char* part = nullptr);

// "<directory of libtreenail>/treenail-<major>", or $TREENAIL_LIBRARY_DIR: holds adapters/,
// kernels/<level>/, plugins/.
std::string private_library_directory();

// The file of libtreenail, as the dynamic linker opened it.
std::string library_file();
// Names of the adapters that lie there, sorted, and where each one's file is.
std::vector<std::string> installed_adapters();
std::string adapter_path(std::string_view name);
// "<private library directory>/<folder>/libtreenail-<name>.so".
std::string installed_library_path(std::string_view folder, std::string_view name);

}  // namespace treenail
