// SPDX-License-Identifier: Apache-2.0
// Files: the system's refusals as Errors, whole reads and writes, and a file that appears under its
// name only when it is complete and on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace treenail {

// `doing` and the path, then the system's words: "cannot open /x/y: No such file or directory".
// NotFound, PermissionDenied, AlreadyExists, ResourceExhausted (disk, quota, descriptors),
// InvalidArgument (a name that cannot be) or, for the rest, Unavailable.
[[noreturn]] void throw_file_error(int error, std::string_view doing, const std::string& path);

// An open descriptor, closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Errors: as throw_file_error; FailedPrecondition for what is no regular file.
FileDescriptor open_for_reading(const std::string& path);
int64_t file_size(const FileDescriptor& file, const std::string& path);
// Up to `bytes` bytes from `offset`; fewer at the end of the file only.
size_t read_at(const FileDescriptor& file, int64_t offset, void* data, size_t bytes,
               const std::string& path);
void write_at(const FileDescriptor& file, int64_t offset, const void* data, size_t bytes,
              const std::string& path);

// Whether both are there, and one file.
bool same_file(const std::string& a, const std::string& b);
// Errors: as throw_file_error.
void remove_file(const std::string& path);
// Leaves it where it is not empty, or none.
void remove_empty_directory(const std::string& path);

// A new file beside `path`, under a name of its own until commit() puts it in place of whatever is
// there, if that is a file. Unless committed, nothing is left and `path` is untouched; what a
// killed process left of an earlier attempt is removed.
class AtomicFile {
 public:
  // Makes the empty file. Errors: as throw_file_error; FailedPrecondition where `path` is a
  // directory, a pipe, a socket or a device.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  const FileDescriptor& file() const { return file_; }
  // Data and name reach the disk, in this order.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  FileDescriptor file_;
  bool done_ = false;
};

}  // namespace treenail
