// SPDX-License-Identifier: Apache-2.0
// Opening the HDF5 adapter.
#include "framework/io/hdf5_file.h"

#include <string>
#include <string_view>
#include <utility>

#include "framework/base/adapter.h"
#include "framework/base/error.h"
#include "framework/io/checkpoint.h"

namespace treenail {

const Hdf5Api& hdf5_api() {
  constexpr AdapterRequest kRequest = {"hdf5", sizeof(Hdf5Api), "checkpoints",
                                       "libhdf5 (package hdf5 on Fedora, libhdf5 on Debian)"};
  return *static_cast<const Hdf5Api*>(open_adapter(kRequest));
}

void check_hdf5(const Hdf5Status& status, std::string_view doing, const std::string& path) {
  if (status.code == 0) return;
  throw Error(static_cast<Code>(status.code),
              concat("cannot ", doing, " ", path, ": ", status.text));
}

void Hdf5Handle::close(Hdf5Status* status) {
  hdf5_api().close(std::exchange(file_, nullptr), status);
}

void Hdf5Handle::discard() {
  if (file_ != nullptr) hdf5_api().discard(std::exchange(file_, nullptr));
}

bool hdf5_has_lock() { return hdf5_api().has_lock() != 0; }

void set_hdf5_lock(void (*lock)(void*), void (*unlock)(void*), void* argument) {
  hdf5_api().set_outer_lock(lock, unlock, argument);
}

std::string hdf5_version() {
  uint32_t major = 0, minor = 0, release = 0;
  hdf5_api().version(&major, &minor, &release);
  return concat(major, ".", minor, ".", release);
}

}  // namespace treenail
