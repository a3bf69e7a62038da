// SPDX-License-Identifier: Apache-2.0
// Opening adapters: what is absent, broken or of another version is a sentence, and a good one is
// opened once.
#include "framework/base/adapter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "build_info.h"
#include "framework/base/error.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

class Adapter : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_ + "/adapters");
    ::setenv("TREENAIL_LIBRARY_DIR", directory_.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TREENAIL_LIBRARY_DIR"); }
  static AdapterRequest request(const char* name) {
    return {name, sizeof(AdapterHeader), "testing", "libnothing (Debian: libnothing1)"};
  }
  // Puts a library of tests/base/adapter there as the adapter of this name.
  void install(const std::string& library, const std::string& name) const {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    std::filesystem::copy_file(
        program.parent_path() / "plugins" / ("libtreenail-" + library + ".so"),
        directory_ + "/adapters/libtreenail-" + name + ".so");
  }
  // What open_adapter() says of it.
  static std::string refusal(const AdapterRequest& request) {
    try {
      open_adapter(request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUnimplemented);
      return error.message();
    }
    return "opened";
  }
  const test::TemporaryDirectory own_;
  const std::string& directory_ = own_.path();
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
                  ", Fedora: treenail-libs), or build "
                  "it with libnothing (Debian: libnothing1)");
  }
  std::string why;
  EXPECT_EQ(try_open_adapter(request("absent"), &why), nullptr);
  EXPECT_NE(why.find("libtreenail-absent.so"), std::string::npos);
}

TEST_F(Adapter, OneInAPackageOfItsOwnIsNamedByThat) {
  AdapterRequest asked = request("apart");
  asked.part = "grpc";
  EXPECT_NE(refusal(asked).find(concat("(Debian: libtreenail", build_info::kVersionMajor,
                                       "-grpc, Fedora: treenail-grpc), or build it with ")),
            std::string::npos)
      << refusal(asked);
}

TEST_F(Adapter, BrokenFileIsASentence) {
  std::ofstream(directory_ + "/adapters/libtreenail-broken.so") << "not a library";
  try {
    open_adapter(request("broken"));
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnimplemented);
    EXPECT_NE(error.message().find("libtreenail-broken.so"), std::string::npos);
    EXPECT_NE(error.message().find("is no ELF file; install Treenail's broken adapter"),
              std::string::npos);
  }
}

// Its table is as large as the one asked for: the version alone tells that it is another's.
TEST_F(Adapter, OneOfAnotherVersionIsRefused) {
  install("of-another-version", "older");
  EXPECT_EQ(refusal(request("older")),
            "feature \"older\" is needed for testing: " + directory_ +
                "/adapters/libtreenail-older.so is of Treenail 0.0.7, this libtreenail of " +
                build_info::kVersion + "; install Treenail's older adapter, version " +
                build_info::kVersion + " (Debian: libtreenail" +
                std::to_string(build_info::kVersionMajor) + ", Fedora: treenail-libs)");
}

TEST_F(Adapter, OneOfThisVersionIsOpenedAndAnotherTableOfItRefused) {
  install("of-this-version", "good");
  const auto* header = static_cast<const AdapterHeader*>(open_adapter(request("good")));
  EXPECT_STREQ(header->version, build_info::kVersion);
  install("of-this-version", "larger");
  AdapterRequest larger = request("larger");
  larger.struct_size += 8;
  EXPECT_NE(refusal(larger).find("libtreenail-larger.so is of another build of Treenail " +
                                 std::string(build_info::kVersion)),
            std::string::npos);
}

TEST_F(Adapter, ALibraryWithoutATableIsNoAdapter) {
  install("example", "plugin");
  EXPECT_NE(refusal(request("plugin")).find("libtreenail-plugin.so is no adapter of Treenail"),
            std::string::npos);
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
