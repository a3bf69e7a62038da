// SPDX-License-Identifier: Apache-2.0
// Files: errors by class, and atomic replacement.
#include "framework/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "framework/base/error.h"
#include "tests/io/temporary_directory.h"

namespace treenail {
namespace {

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "no Error");
}

TEST(File, SystemErrorsGetTheirClass) {
  const auto code = [](int error) {
    return error_of([error] { throw_file_error(error, "open", "/x"); }).code();
  };
  EXPECT_EQ(code(ENOENT), Code::kNotFound);
  EXPECT_EQ(code(EACCES), Code::kPermissionDenied);
  EXPECT_EQ(code(EROFS), Code::kPermissionDenied);
  EXPECT_EQ(code(ENOSPC), Code::kResourceExhausted);
  EXPECT_EQ(code(ENAMETOOLONG), Code::kInvalidArgument);
  EXPECT_EQ(code(EIO), Code::kUnavailable);
  EXPECT_EQ(error_of([] { throw_file_error(ENOENT, "open", "/x"); }).message(),
            "cannot open /x: No such file or directory");
}

TEST(File, OnlyRegularFilesAreRead) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { open_for_reading(directory.path()); }).message(),
            "cannot read " + directory.path() + ": it is a directory");
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { open_for_reading(directory.file("pipe")); }).code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(error_of([&] { open_for_reading(directory.file("absent")); }).code(), Code::kNotFound);
}

TEST(File, ReadsUpToTheEnd) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a");
  write_bytes(path, "0123456789");
  const FileDescriptor file = open_for_reading(path);
  EXPECT_EQ(file_size(file, path), 10);
  char bytes[8] = {};
  EXPECT_EQ(read_at(file, 4, bytes, 8, path), 6u);
  EXPECT_EQ(std::string(bytes), "456789");
  EXPECT_EQ(read_at(file, 10, bytes, 8, path), 0u);
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("target");
  write_bytes(path, "old");
  {
    AtomicFile file(path);
    write_at(file.file(), 0, "new", 3, path);
    EXPECT_EQ(file_bytes(path), "old");
    file.commit();
    EXPECT_EQ(file_bytes(path), "new");
  }
  EXPECT_EQ(directory.entries(), 1);
}

TEST(AtomicFile, LeavesNothingOtherwise) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("target");
  {
    AtomicFile file(path);
    write_at(file.file(), 0, "new", 3, path);
    EXPECT_EQ(directory.entries(), 1);
  }
  EXPECT_EQ(directory.entries(), 0);
}

TEST(AtomicFile, BadTargetsAreErrors) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { AtomicFile(directory.file("absent/x")); }).code(), Code::kNotFound);
  EXPECT_EQ(error_of([&] { AtomicFile{directory.path()}; }).code(), Code::kFailedPrecondition);
  EXPECT_EQ(error_of([&] { AtomicFile(""); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { AtomicFile(directory.file(std::string(300, 'x'))); }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(directory.entries(), 0);
}

}  // namespace
}  // namespace treenail
