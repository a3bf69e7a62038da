// SPDX-License-Identifier: Apache-2.0
// Where a path leads, and which paths a thread may follow. All that opens, renames or removes files
// goes through a FilePlace, so that work done for others can be kept below some directories: no
// "..", no symbolic link and no rename under way leads out of them, for the system resolves what is
// left of a path from an open descriptor (openat2 with RESOLVE_BENEATH).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "framework/io/file.h"

namespace treenail {

// Directories below which files may be named.
class FileRoots {
 public:
  // `directories`: absolute, and there already. Errors: InvalidArgument; NotFound,
  // PermissionDenied; Unimplemented before Linux 5.6, which cannot confine a path.
  explicit FileRoots(const std::vector<std::string>& directories);

 private:
  friend class FilePlace;
  struct Root {
    std::string path;  // with a slash at its end
    FileDescriptor directory;
  };
  std::vector<Root> roots_;
};

// While it lives, files that this thread names lie below `roots`; null: anywhere.
class FileScope {
 public:
  explicit FileScope(const FileRoots* roots);
  ~FileScope();
  FileScope(const FileScope&) = delete;
  FileScope& operator=(const FileScope&) = delete;

 private:
  const FileRoots* const before_;
};

// A directory and a name in it.
class FilePlace {
 public:
  // Errors: InvalidArgument for a path that can be none; within a FileScope PermissionDenied for
  // one that leads elsewhere, and NotFound without its directory.
  explicit FilePlace(const std::string& path);

  // As the calls of the system, which say what is wrong by -1 and errno. A file is never opened
  // through a symbolic link within a FileScope.
  int open(int flags, mode_t mode = 0) const;
  int status(struct stat& result) const;
  int remove() const;
  int remove_directory() const;
  // That file, of the same directory, takes this one's name.
  int replace_by(const FilePlace& file) const;
  // The directory itself, for reading.
  int open_directory() const;

 private:
  void confine(const FileRoots& roots, const std::string& path);
  int at() const;

  FileDescriptor directory_;  // none: the path is not confined
  std::string name_;          // the whole path there
};

}  // namespace treenail
