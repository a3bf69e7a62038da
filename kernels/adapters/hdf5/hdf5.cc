// SPDX-License-Identifier: Apache-2.0
// The HDF5 adapter's table (framework/io/hdf5_api.h), and files as wholes. What makes a file a
// checkpoint (user block, checksum, atomic replacement): framework/io/checkpoint.h.
#include "framework/io/hdf5_api.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "build_info.h"
#include "kernels/adapters/hdf5/hdf5_contents.h"
#include "kernels/adapters/hdf5/hdf5_driver.h"
#include "kernels/adapters/hdf5/hdf5_support.h"

namespace treenail::hdf5 {
namespace {

// HDF5 wants a name for its messages and for its tables of open files; the driver does not look at
// it.
constexpr const char* kName = "checkpoint";

void version(uint32_t* major, uint32_t* minor, uint32_t* release) {
  unsigned a = 0, b = 0, c = 0;
  H5get_libversion(&a, &b, &c);
  *major = a;
  *minor = b;
  *release = c;
}

int32_t has_lock() {
  hbool_t locks = 0;
  return H5is_library_threadsafe(&locks) >= 0 && locks != 0 ? 1 : 0;
}

// Null and a status when `make` fails.
template <class Make>
Hdf5File* make_file(int fd, Hdf5Status* status, Make&& make) {
  auto* file = new (std::nothrow) Hdf5File;
  if (file == nullptr) {
    put(status, Code::kResourceExhausted, "out of memory");
    return nullptr;
  }
  file->channel.fd = fd;
  run_on(file, status, [&] { make(file); });
  if (status->code == 0) return file;
  Hdf5Status ignored;
  run(&ignored, [&] { delete file; });
  return nullptr;
}

Hdf5File* create(int fd, uint64_t user_block, Hdf5Status* status) {
  return make_file(fd, status, [user_block](Hdf5File* file) {
    const ListId creation =
        checked<ListId>(H5Pcreate(H5P_FILE_CREATE), Code::kInternal, "prepare a file");
    check(H5Pset_userblock(creation.get(), user_block), Code::kInternal, "prepare a file");
    const ListId access = access_through(&file->channel);
    file->id = checked<FileId>(H5Fcreate(kName, H5F_ACC_TRUNC, creation.get(), access.get()),
                               Code::kInternal, "create the file");
  });
}

Hdf5File* open(int fd, Hdf5Status* status) {
  return make_file(fd, status, [](Hdf5File* file) {
    const ListId access = access_through(&file->channel);
    file->id = checked<FileId>(H5Fopen(kName, H5F_ACC_RDONLY, access.get()), Code::kDataLoss,
                               "open the file");
  });
}

void discard(Hdf5File* file) {
  Hdf5Status ignored;
  run(&ignored, [&] { delete file; });
}

void close(Hdf5File* file, Hdf5Status* status) {
  run_on(file, status,
         [&] { check(H5Fclose(file->id.release()), Code::kInternal, "finish the file"); });
  discard(file);
}

}  // namespace

void put_lock_error(Hdf5Status* status, int error) {
  if (error == EWOULDBLOCK) {
    put(status, Code::kUnavailable,
        "another program has locked the file; it is still writing, or has it open to write");
    return;
  }
  const std::string text =
      std::string("the file system gives no lock on the file (flock: ") + std::strerror(error) +
      "), and HDF5_USE_FILE_LOCKING asks for one; HDF5_USE_FILE_LOCKING=FALSE turns locks off, "
      "which checkpoints do not need";
  put(status, Code::kFailedPrecondition, text.c_str());
}

namespace {

constexpr Hdf5Api kApi = {
    {sizeof(Hdf5Api), build_info::kVersion},
    version,
    has_lock,
    set_outer_lock,
    create,
    open,
    close,
    discard,
    write,
    list,
    read,
    read_strings,
};

}  // namespace
}  // namespace treenail::hdf5

extern "C" const void* treenail_adapter(void) { return &treenail::hdf5::kApi; }
