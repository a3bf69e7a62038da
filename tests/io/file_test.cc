// SPDX-License-Identifier: Apache-2.0
// Files: errors by class, and atomic replacement.
#include "framework/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "framework/base/error.h"
#include "framework/io/temporary_name.h"
#include "tests/io/test_files.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::TemporaryDirectory;

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

TEST(AtomicFile, DoesNotReplaceWhatIsNoFile) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Error error = error_of([&] { AtomicFile{pipe}; });
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_EQ(error.message(), "cannot write " + pipe +
                                 ": it is a named pipe, which a file would replace; needed is the "
                                 "name of a file");
  const std::string late = directory.file("late");
  {
    AtomicFile file(late);
    ASSERT_EQ(::mkfifo(late.c_str(), 0600), 0);
    EXPECT_EQ(error_of([&] { file.commit(); }).code(), Code::kFailedPrecondition);
  }
  struct stat status = {};
  ASSERT_EQ(::stat(late.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(directory.entries(), 2);
}

// As a process that is killed does: no destructor runs.
void die_while_writing(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    new AtomicFile(path);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(AtomicFile, RemovesWhatKilledProcessesLeft) {
  const TemporaryDirectory directory;
  for (const char* name : {"model-7", "model-x", "models", "other-7"})
    die_while_writing(directory.file(name));
  EXPECT_EQ(directory.entries(), 4);
  AtomicFile(directory.file("model-8")).commit();
  EXPECT_EQ(directory.entries(), 4);  // model-8, and what is left of model-x, models and other-7
  AtomicFile(directory.file("other")).commit();
  EXPECT_EQ(directory.entries(), 4);
}

TEST(AtomicFile, LeavesAloneWhatOthersMayBeWriting) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("model");
  const AtomicFile being_written(path);
  const std::string name = temporary_name(path);
  const std::string own = "-" + std::to_string(::getpid()) + "-";
  const size_t at = name.find(own);
  ASSERT_NE(at, std::string::npos);
  // Another host's, another program's, a number that no process can have, and text behind it.
  for (const std::string& left :
       {path + ".tmp-1-999999999-0", path + ".tmp-999999999", name.substr(0, at) + "-0-0",
        name.substr(0, at) + "-99999999999999999999-0", name.substr(0, at) + "-999999999-0.bak"})
    write_bytes(left, "");
  AtomicFile{directory.file("model-1")}.commit();
  EXPECT_EQ(directory.entries(), 7);
  write_bytes(name.substr(0, at) + "-999999999-0", "");  // above every limit of process numbers
  AtomicFile{directory.file("model-2")}.commit();
  EXPECT_EQ(directory.entries(), 8);
}

}  // namespace
}  // namespace treenail
