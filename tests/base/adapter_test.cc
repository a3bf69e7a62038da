// SPDX-License-Identifier: Apache-2.0
// Opening adapters: what is absent, broken or of another build is a sentence, and a good one is
// opened once.
#include "framework/base/adapter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "build_info.h"
#include "framework/base/error.h"

namespace treenail {
namespace {

class Adapter : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = (std::filesystem::temp_directory_path() / "treenail-adapter-XXXXXX").string();
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    std::filesystem::create_directories(directory_ + "/adapters");
    ::setenv("TREENAIL_LIBRARY_DIR", directory_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("TREENAIL_LIBRARY_DIR");
    std::filesystem::remove_all(directory_);
  }
  static AdapterRequest request(const char* name) {
    return {name, 1, sizeof(AdapterHeader), "testing", "libnothing (Debian: libnothing1)", "some"};
  }
  std::string directory_;
};

TEST_F(Adapter, AbsentOneIsNamedWithFileAndPackage) {
  try {
    open_adapter(request("absent"));
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnimplemented);
    EXPECT_EQ(error.message(),
              "feature \"absent\" is needed for testing: no file " + directory_ +
                  "/adapters/libtreenail-absent.so; install Treenail's absent adapter, version " +
                  build_info::kVersion + " (Debian: libtreenail" +
                  std::to_string(build_info::kVersionMajor) +
                  "-some, Fedora: treenail-some), or build "
                  "it with libnothing (Debian: libnothing1)");
  }
  std::string why;
  EXPECT_EQ(try_open_adapter(request("absent"), &why), nullptr);
  EXPECT_NE(why.find("libtreenail-absent.so"), std::string::npos);
}

TEST_F(Adapter, BrokenFileIsUnimplementedWithTheLoadersWords) {
  std::ofstream(directory_ + "/adapters/libtreenail-broken.so") << "not a library";
  try {
    open_adapter(request("broken"));
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnimplemented);
    EXPECT_NE(error.message().find("libtreenail-broken.so"), std::string::npos);
    EXPECT_NE(error.message().find("; install libnothing (Debian: libnothing1)"),
              std::string::npos);
  }
}

TEST_F(Adapter, OutcomeIsRemembered) {
  EXPECT_EQ(try_open_adapter(request("late")), nullptr);
  std::ofstream(directory_ + "/adapters/libtreenail-late.so") << "not a library";
  std::string why;
  EXPECT_EQ(try_open_adapter(request("late"), &why), nullptr);
  EXPECT_NE(why.find("no file"), std::string::npos);
}

TEST_F(Adapter, DirectoryComesFromTheEnvironmentOrTheLibrary) {
  EXPECT_EQ(private_library_directory(), directory_);
  ::unsetenv("TREENAIL_LIBRARY_DIR");
  const std::string own = private_library_directory();
  EXPECT_NE(own.find("/treenail-"), std::string::npos) << own;
}

}  // namespace
}  // namespace treenail
