// SPDX-License-Identifier: Apache-2.0
// Files that are named by others stay below the directories that these may name.
#include "framework/io/file_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/temporary_name.h"
#include "tests/io/test_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::TemporaryDirectory;
using testing::error_of;

namespace fs = std::filesystem;

class FilePlaces : public ::testing::Test {
 protected:
  FilePlaces() {
    fs::create_directories(inside + "/deep");
    fs::create_directories(outside);
    write_bytes(outside + "/secret", "secret");
    write_bytes(inside + "/own", "own");
    fs::create_directory_symlink(outside, inside + "/leads_out");
    fs::create_directory_symlink("deep", inside + "/stays");
    fs::create_symlink(outside + "/secret", inside + "/file_out");
    roots = std::make_unique<FileRoots>(std::vector<std::string>{inside});
  }
  std::string opening(const std::string& path) const {
    const FileScope scope(roots.get());
    return error_of([&] { open_for_reading(path); });
  }
  std::string writing(const std::string& path) const {
    const FileScope scope(roots.get());
    return error_of([&] {
      AtomicFile file(path);
      write_at(file.file(), 0, "new", 3, path);
      file.commit();
    });
  }

  const TemporaryDirectory folder;
  const std::string outside = folder.path() + "/outside";
  const std::string inside = folder.path() + "/inside";
  std::unique_ptr<FileRoots> roots;
};

TEST_F(FilePlaces, BelowTheRootAllIsAsEver) {
  EXPECT_EQ(opening(inside + "/own"), "no error");
  for (const char* name : {"/made", "/deep/made", "/stays/linked", "/own", "/deep/../again"}) {
    EXPECT_EQ(writing(inside + name), "no error") << name;
    EXPECT_EQ(file_bytes(inside + name), "new") << name;
  }
  const FileScope scope(roots.get());
  EXPECT_TRUE(same_file(inside + "/stays/linked", inside + "/deep/linked"));
  EXPECT_FALSE(same_file(inside + "/own", inside + "/deep/linked"));
  remove_file(inside + "/own");
  EXPECT_FALSE(fs::exists(inside + "/own"));
  fs::create_directory(inside + "/empty");
  remove_empty_directory(inside + "/empty");
  EXPECT_FALSE(fs::exists(inside + "/empty"));
  // What a killed process left of an earlier attempt is removed.
  const std::string left = temporary_name(inside + "/deep/made");
  const std::string own = concat("-", static_cast<int64_t>(::getpid()), "-");
  std::string gone = left;
  gone.replace(gone.find(own), own.size(), "-999999999-");
  write_bytes(gone, "part");
  EXPECT_EQ(writing(inside + "/deep/made"), "no error");
  EXPECT_FALSE(fs::exists(gone));
}

TEST_F(FilePlaces, NothingLeadsOut) {
  const std::vector<std::string> paths = {outside + "/secret",
                                          inside + "/../outside/secret",
                                          inside + "/deep/../../outside/secret",
                                          inside + "/leads_out/secret",
                                          inside + "x/secret",
                                          inside,
                                          inside + "/..",
                                          inside + "/deep/..",
                                          "own",
                                          "/proc/self/cwd/own",
                                          "/etc/passwd"};
  for (const std::string& path : paths) {
    const std::string wanted = concat("PermissionDenied: \"", path, "\" is not below ");
    EXPECT_TRUE(opening(path).starts_with(wanted)) << opening(path);
    EXPECT_TRUE(writing(path).starts_with(wanted)) << writing(path);
    const FileScope scope(roots.get());
    EXPECT_TRUE(error_of([&] { remove_file(path); }).starts_with(wanted)) << path;
  }
  EXPECT_EQ(file_bytes(outside + "/secret"), "secret");
}

TEST_F(FilePlaces, AFileThatIsALinkIsNotFollowed) {
  EXPECT_TRUE(opening(inside + "/file_out").starts_with("InvalidArgument: cannot open "));
  // The link gives way to a file, as in a rename anywhere.
  EXPECT_EQ(writing(inside + "/file_out"), "no error");
  EXPECT_EQ(file_bytes(outside + "/secret"), "secret");
  EXPECT_EQ(file_bytes(inside + "/file_out"), "new");
  EXPECT_FALSE(fs::is_symlink(inside + "/file_out"));
}

TEST_F(FilePlaces, SaysWhatIsMissingAndWhatIsNoFile) {
  EXPECT_TRUE(opening(inside + "/none").starts_with("NotFound: cannot open ")) << opening("x");
  EXPECT_TRUE(opening(inside + "/no/file").starts_with("NotFound: cannot open the directory of "));
  EXPECT_TRUE(opening(inside + "/deep").starts_with("FailedPrecondition: cannot read "));
  ASSERT_EQ(::mkfifo((inside + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(opening(inside + "/pipe").starts_with("FailedPrecondition: cannot read "));
  EXPECT_TRUE(writing(inside + "/pipe").starts_with("FailedPrecondition: cannot write "));
  EXPECT_TRUE(opening("").starts_with("InvalidArgument: ")) << opening("");
}

TEST_F(FilePlaces, ARootThatIsRenamedStaysTheRoot) {
  fs::rename(inside, folder.path() + "/elsewhere");
  fs::create_directory(inside);
  write_bytes(inside + "/own", "another");
  const FileScope scope(roots.get());
  const FileDescriptor file = open_for_reading(inside + "/own");
  std::string text(3, ' ');
  read_at(file, 0, text.data(), 3, "own");
  EXPECT_EQ(text, "own");
}

TEST_F(FilePlaces, DirectoriesThatChangeUnderWayLeadNowhereElse) {
  fs::create_directory(inside + "/turns");
  write_bytes(inside + "/turns/secret", "inside");
  std::atomic<bool> done{false};
  std::thread turner([&] {
    while (!done) {
      fs::rename(inside + "/turns", inside + "/kept");
      fs::create_directory_symlink(outside, inside + "/turns");
      fs::remove(inside + "/turns");
      fs::rename(inside + "/kept", inside + "/turns");
    }
  });
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    const FileScope scope(roots.get());
    try {
      const FileDescriptor file = open_for_reading(inside + "/turns/secret");
      std::string text(6, ' ');
      read_at(file, 0, text.data(), 6, "secret");
      ASSERT_EQ(text, "inside");
      ++read;
    } catch (const Error& error) {
      const bool expected =
          error.code() == Code::kPermissionDenied || error.code() == Code::kNotFound;
      ASSERT_TRUE(expected) << error.message();
    }
  }
  done = true;
  turner.join();
  EXPECT_GT(read, 0);
}

TEST_F(FilePlaces, WithoutAScopeAndAfterItAllIsOpen) {
  {
    const FileScope scope(roots.get());
    const FileScope open(nullptr);
    EXPECT_EQ(error_of([&] { open_for_reading(outside + "/secret"); }), "no error");
  }
  EXPECT_EQ(error_of([&] { open_for_reading(outside + "/secret"); }), "no error");
  const FileRoots none({});
  const FileScope scope(&none);
  EXPECT_TRUE(
      error_of([&] { open_for_reading(inside + "/own"); }).starts_with("PermissionDenied: "));
}

TEST(FileRoots, AreDirectoriesThatAreThere) {
  EXPECT_EQ(error_of([] { FileRoots({"relative"}); }),
            "InvalidArgument: \"relative\" is no absolute path of a directory");
  EXPECT_EQ(error_of([] { FileRoots({"/none/at/all"}); }),
            "NotFound: cannot open the directory /none/at/all: No such file or directory");
  EXPECT_EQ(error_of([] { FileRoots({"/etc/passwd"}); }),
            "NotFound: cannot open the directory /etc/passwd: Not a directory");
}

}  // namespace
}  // namespace treenail
