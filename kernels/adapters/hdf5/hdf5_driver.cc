// SPDX-License-Identifier: Apache-2.0
// A virtual file driver of HDF5 over an open descriptor.
#include "kernels/adapters/hdf5/hdf5_driver.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

namespace treenail::hdf5 {
namespace {

// What H5Pset_driver copies.
struct Config {
  Channel* channel;
};

// HDF5 fills in and reads the first member; it frees nothing of this.
struct OpenFile {
  H5FD_t common;
  Channel* channel;
  haddr_t end_of_allocation;
  haddr_t end_of_file;
};

constexpr haddr_t kMaxAddress = (haddr_t{1} << 62) - 1;

OpenFile* of(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* of(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

void remember(Channel* channel, int error) {
  if (channel->error == 0) channel->error = error;
}

// The name is ignored: the descriptor is in the properties. C code calls this, so no exception may
// leave.
H5FD_t* open_file(const char*, unsigned flags, hid_t access, haddr_t) {
  const auto* config = static_cast<const Config*>(H5Pget_driver_info(access));
  if (config == nullptr) return nullptr;
  Channel* channel = config->channel;
  if ((flags & H5F_ACC_TRUNC) != 0 && ::ftruncate(channel->fd, 0) != 0) {
    remember(channel, errno);
    return nullptr;
  }
  struct stat status = {};
  if (::fstat(channel->fd, &status) != 0) {
    remember(channel, errno);
    return nullptr;
  }
  auto* file = new (std::nothrow) OpenFile();
  if (file == nullptr) return nullptr;
  file->channel = channel;
  file->end_of_file = static_cast<haddr_t>(status.st_size);
  return &file->common;
}

herr_t close_file(H5FD_t* file) {
  delete of(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t end_of_allocation(const H5FD_t* file, H5FD_mem_t) { return of(file)->end_of_allocation; }
haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) { return of(file)->end_of_file; }
herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  of(file)->end_of_allocation = address;
  return 0;
}

// Beyond the end of the file there are zeros.
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  Channel* channel = of(file)->channel;
  auto* to = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t got = ::pread(channel->fd, to, size, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      remember(channel, errno);
      return -1;
    }
    if (got == 0) {
      std::memset(to, 0, size);
      return 0;
    }
    to += got;
    address += static_cast<haddr_t>(got);
    size -= static_cast<size_t>(got);
  }
  return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size,
                   const void* buffer) {
  Channel* channel = of(file)->channel;
  const auto* from = static_cast<const char*>(buffer);
  of(file)->end_of_file = std::max<haddr_t>(of(file)->end_of_file, address + size);
  while (size > 0 && channel->error == 0) {
    const ssize_t put = ::pwrite(channel->fd, from, size, static_cast<off_t>(address));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      remember(channel, put == 0 ? ENOSPC : errno);
      break;
    }
    from += put;
    address += static_cast<haddr_t>(put);
    size -= static_cast<size_t>(put);
  }
  return 0;
}

// The file becomes as long as what was allocated in it.
herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  OpenFile* open = of(file);
  if (open->end_of_allocation == open->end_of_file) return 0;
  if (open->channel->error == 0 &&
      ::ftruncate(open->channel->fd, static_cast<off_t>(open->end_of_allocation)) != 0) {
    remember(open->channel, errno);
  }
  open->end_of_file = open->end_of_allocation;
  return 0;
}

// The variable is HDF5's own, and so are its words. What it says is read at each opening, as some
// versions of libhdf5 look once only. The lock ends with the descriptor.
herr_t lock_file(H5FD_t* file, hbool_t writing) {
  const char* setting = std::getenv("HDF5_USE_FILE_LOCKING");
  const std::string_view wanted = setting == nullptr ? "" : setting;
  const bool must = wanted == "TRUE" || wanted == "1";
  if (!must && wanted != "BEST_EFFORT") return 0;
  Channel* channel = of(file)->channel;
  if (::flock(channel->fd, (writing != 0 ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return 0;
  if (!must && errno != EWOULDBLOCK) return 0;
  channel->lock_error = errno;
  return -1;
}

// By assignment: the members' order and number differ between versions of HDF5.
H5FD_class_t make_class() {
  H5FD_class_t driver = {};
#if defined(H5FD_CLASS_VERSION)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(509);  // of the range for private use
#endif
  driver.name = "treenail";
  driver.maxaddr = kMaxAddress;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Config);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = end_of_file;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.truncate = truncate_file;
  driver.lock = lock_file;
  const H5FD_mem_t lists[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(lists), std::end(lists), driver.fl_map);
  return driver;
}

// Registered anew if somebody closed the library meanwhile. Called within an Entry only.
hid_t driver_id() {
  static const H5FD_class_t driver = make_class();
  static hid_t id = -1;
  if (id < 0 || H5Iget_type(id) != H5I_VFL) {
    id = H5FDregister(&driver);
    if (id < 0) fail(Code::kInternal, "register a file driver");
  }
  return id;
}

}  // namespace

ListId access_through(Channel* channel) {
  ListId access = checked<ListId>(H5Pcreate(H5P_FILE_ACCESS), Code::kInternal, "prepare a file");
  const Config config = {channel};
  check(H5Pset_driver(access.get(), driver_id(), &config), Code::kInternal, "prepare a file");
  // Closing the file closes what a failure left open in it.
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), Code::kInternal, "prepare a file");
  return access;
}

}  // namespace treenail::hdf5
