// SPDX-License-Identifier: Apache-2.0
// POSIX files.
#include "framework/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/file_place.h"
#include "framework/io/temporary_name.h"

namespace treenail {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EEXIST:
      return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    case EISDIR:
      return Code::kFailedPrecondition;
    case ENAMETOOLONG:
    case EINVAL:
    case ELOOP:
      return Code::kInvalidArgument;
    default:
      return Code::kUnavailable;
  }
}

// What is no regular file is something that others hold open or depend on: a pipe, a socket, a
// device. A file in its place would cut them off.
void check_replaceable(const FilePlace& place, const std::string& path) {
  struct stat status = {};
  if (place.status(status) != 0 || S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) return;
  if (S_ISDIR(status.st_mode)) throw_file_error(EISDIR, "write", path);
  const char* kind = S_ISFIFO(status.st_mode)   ? "a named pipe"
                     : S_ISSOCK(status.st_mode) ? "a socket"
                                                : "a device";
  throw failed_precondition("cannot write ", path, ": it is ", kind,
                            ", which a file would replace; needed is the name of a file");
}

}  // namespace

void throw_file_error(int error, std::string_view doing, const std::string& path) {
  throw Error(code_of(error), concat("cannot ", doing, " ", path, ": ", std::strerror(error)));
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

FileDescriptor open_for_reading(const std::string& path) {
  // O_NONBLOCK: opening a pipe nobody writes to must not wait.
  FileDescriptor file(FilePlace(path).open(O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) throw_file_error(errno, "open", path);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_file_error(errno, "examine", path);
  if (!S_ISREG(status.st_mode)) {
    throw failed_precondition("cannot read ", path, ": it is ",
                              S_ISDIR(status.st_mode) ? "a directory" : "no regular file");
  }
  return file;
}

int64_t file_size(const FileDescriptor& file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_file_error(errno, "examine", path);
  return status.st_size;
}

size_t read_at(const FileDescriptor& file, int64_t offset, void* data, size_t bytes,
               const std::string& path) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file.get(), static_cast<char*>(data) + done, bytes - done,
                                static_cast<off_t>(offset) + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error(errno, "read", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void write_at(const FileDescriptor& file, int64_t offset, const void* data, size_t bytes,
              const std::string& path) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t put = ::pwrite(file.get(), static_cast<const char*>(data) + done, bytes - done,
                                 static_cast<off_t>(offset) + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw_file_error(put == 0 ? ENOSPC : errno, "write", path);
    done += static_cast<size_t>(put);
  }
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first = {};
  struct stat second = {};
  return FilePlace(a).status(first) == 0 && FilePlace(b).status(second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

void remove_file(const std::string& path) {
  if (FilePlace(path).remove() != 0) throw_file_error(errno, "remove", path);
}

void remove_empty_directory(const std::string& path) { FilePlace(path).remove_directory(); }

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  check_replaceable(FilePlace(path_), path_);
  remove_abandoned(path_);
  do {
    temporary_ = temporary_name(path_);
    file_ = FileDescriptor(FilePlace(temporary_).open(O_RDWR | O_CREAT | O_EXCL, 0666));
  } while (file_.get() < 0 &&
           errno == EEXIST);  // left by a process of the same number that was killed
  if (file_.get() < 0) throw_file_error(errno, "write", path_);
}

AtomicFile::~AtomicFile() {
  if (done_) return;
  try {
    FilePlace(temporary_).remove();
  } catch (const Error&) {
    // Its directory has gone, and it with that.
  }
}

void AtomicFile::commit() {
  if (::fsync(file_.get()) != 0) throw_file_error(errno, "write", path_);
  const FilePlace place(path_);
  check_replaceable(place, path_);
  if (place.replace_by(FilePlace(temporary_)) != 0) throw_file_error(errno, "replace", path_);
  done_ = true;
  file_.reset();
  // The new name is in the directory's data. Some file systems cannot sync a directory; the file is
  // complete either way.
  const FileDescriptor directory(place.open_directory());
  if (directory.get() >= 0) ::fsync(directory.get());
}

}  // namespace treenail
