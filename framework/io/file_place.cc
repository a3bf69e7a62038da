// SPDX-License-Identifier: Apache-2.0
#include "framework/io/file_place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "framework/base/error.h"

namespace treenail {
namespace {

thread_local const FileRoots* allowed = nullptr;

template <class Call>
int retrying(Call call) {
  int result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// Never outside of `directory`.
int open_beneath(int directory, const std::string& path, int flags, mode_t mode, uint64_t resolve) {
  struct open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve;
  // EAGAIN: something on the way was renamed meanwhile.
  int result;
  do {
    result = static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how));
  } while (result < 0 && (errno == EINTR || errno == EAGAIN));
  return result;
}

[[noreturn]] void throw_outside(const std::string& path, const std::string& roots) {
  throw error_of(Code::kPermissionDenied,
                 {"\"", path, "\" is not below ", roots,
                  ": files elsewhere are not to be named here. Needed is an absolute path that "
                  "stays there"});
}

}  // namespace

FileRoots::FileRoots(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (!directory.starts_with('/'))
      throw invalid_argument("\"", directory, "\" is no absolute path of a directory");
    FileDescriptor opened(
        retrying([&] { return ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
    if (opened.get() < 0) throw_file_error(errno, "open the directory", directory);
    const FileDescriptor again(open_beneath(opened.get(), ".", O_PATH | O_DIRECTORY, 0, 0));
    if (again.get() < 0 && (errno == ENOSYS || errno == EPERM)) {
      throw unimplemented("cannot keep files below ", directory,
                          ": that needs openat2, which Linux has from 5.6 on");
    }
    roots_.push_back({directory.ends_with('/') ? directory : directory + "/", std::move(opened)});
  }
}

FileScope::FileScope(const FileRoots* roots) : before_(std::exchange(allowed, roots)) {}
FileScope::~FileScope() { allowed = before_; }

FilePlace::FilePlace(const std::string& path) : name_(path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    throw invalid_argument("\"", path, "\" is no file name");
  if (allowed != nullptr) confine(*allowed, path);
}

void FilePlace::confine(const FileRoots& roots, const std::string& path) {
  std::string known;
  for (const FileRoots::Root& root : roots.roots_) {
    known += concat(known.empty() ? "" : ", ", root.path);
    if (!path.starts_with(root.path)) continue;
    const std::string rest = path.substr(root.path.size());
    const size_t slash = rest.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : rest.substr(0, slash + 1);
    name_ = rest.substr(slash + 1);  // npos + 1 is 0
    if (name_.empty() || name_ == "." || name_ == "..") throw_outside(path, root.path);
    directory_ =
        FileDescriptor(open_beneath(root.directory.get(), parent, O_PATH | O_DIRECTORY, 0, 0));
    if (directory_.get() >= 0) return;
    if (errno == EXDEV) throw_outside(path, root.path);
    throw_file_error(errno, "open the directory of", path);
  }
  throw_outside(path, known.empty() ? "any directory" : known);
}

int FilePlace::at() const { return directory_.get() >= 0 ? directory_.get() : AT_FDCWD; }

int FilePlace::open(int flags, mode_t mode) const {
  if (directory_.get() >= 0)
    return open_beneath(directory_.get(), name_, flags, mode, RESOLVE_NO_SYMLINKS);
  return retrying([&] { return ::open(name_.c_str(), flags | O_CLOEXEC, mode); });
}

int FilePlace::status(struct stat& result) const {
  return ::fstatat(at(), name_.c_str(), &result, directory_.get() >= 0 ? AT_SYMLINK_NOFOLLOW : 0);
}

int FilePlace::remove() const { return ::unlinkat(at(), name_.c_str(), 0); }

int FilePlace::remove_directory() const { return ::unlinkat(at(), name_.c_str(), AT_REMOVEDIR); }

int FilePlace::replace_by(const FilePlace& file) const {
  return ::renameat(file.at(), file.name_.c_str(), at(), name_.c_str());
}

int FilePlace::open_directory() const {
  const size_t slash = name_.rfind('/');
  const bool here = slash == std::string::npos;  // of a confined path always
  const std::string path = here ? "." : name_.substr(0, slash + 1);
  return retrying([&] { return ::openat(at(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
}

}  // namespace treenail
