// SPDX-License-Identifier: Apache-2.0
// Plugins that are refused leave nothing behind; and what TREENAIL_PLUGIN_PATH loads.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/capi/support.h"
#include "tests/support/plugin_path.h"

namespace capi_test {
namespace {

using treenail::test::plugin_path;
using treenail::test::test_directory;

bool there(const char* op) {
  Status status;
  return tn_op_find(op, status) != nullptr;
}

std::string loading(const std::string& path) {
  Status status;
  tn_load_plugin(path.c_str(), status);
  return status.said();
}

TEST(PluginRefusal, AnOpThatIsThereAlready) {
  ASSERT_EQ(loading(plugin_path("example")), "Ok");
  EXPECT_EQ(loading(plugin_path("clash")),
            "AlreadyExists: plugin " + plugin_path("clash") +
                ": op \"Cube\" is registered already, by \"example\"");
  EXPECT_FALSE(there("ClashFresh"));
}

struct Breakage {
  const char* how;
  const char* said;  // after "plugin <path>: "
};

class Broken : public ::testing::TestWithParam<Breakage> {};

TEST_P(Broken, LeavesNothingBehind) {
  ::setenv("BROKEN_PLUGIN", GetParam().how, 1);
  const std::string path = plugin_path("broken");
  const std::string said = loading(path);
  ::unsetenv("BROKEN_PLUGIN");
  const std::string wanted = GetParam().said;
  const size_t colon = wanted.find(": ");
  EXPECT_EQ(said, wanted.substr(0, colon + 2) + "plugin " + path + ": " + wanted.substr(colon + 2));
  EXPECT_FALSE(there("BrokenFresh"));
  EXPECT_FALSE(there("BrokenOp"));
}

constexpr Breakage kBreakages[] = {
    {"silent",
     "FailedPrecondition: it does not say its ABI version: tn_plugin_begin() comes first"},
    {"plugin name", "InvalidArgument: the plugin's name is NULL"},
    {"own failure", "Unavailable: the licence server is down"},
    {"declaration",
     "InvalidArgument: op \"BrokenOp\": \"x\" names attribute \"U\", which is not declared (nor is "
     "it a type)"},
    {"no shape rule", "InvalidArgument: op \"BrokenOp\": it has no shape rule"},
    {"no gradient",
     "InvalidArgument: op \"BrokenOp\": it has no gradient rule; if it has no gradient by nature, "
     "flag "
     "TN_OP_NOT_DIFFERENTIABLE"},
    {"flag", "InvalidArgument: op \"BrokenOp\": a flag is not known to this version of Treenail"},
    {"struct size", "InvalidArgument: tn_op_spec.struct_size is 3; set it to sizeof(tn_op_spec)"},
    {"in place",
     "InvalidArgument: op \"BrokenOp\": in_place lists pairs of an input and an output"},
    {"reads",
     "InvalidArgument: op \"BrokenOp\": it says what its gradient rule reads, but has none"},
    {"resource",
     "InvalidArgument: op \"BrokenOp\": \"x\" is a resource, which plugins of ABI version 1 cannot "
     "handle"},
    {"no name", "InvalidArgument: the op's name is NULL"},
    {"not a type",
     "InvalidArgument: a kernel for op \"BrokenOp\" constrains \"S\", which is no type attribute "
     "of it"},
    {"no types",
     "InvalidArgument: a kernel for op \"BrokenOp\" constrains types by \"T: type\"; needed is, "
     "for example, "
     "\"T: {float, double}\""},
    {"no run", "InvalidArgument: a kernel for op \"BrokenOp\" has no run function"},
    {"two kernels",
     "AlreadyExists: op \"BrokenOp\" has a kernel for T in {float32} already; another one is for T "
     "in {float32}"},
};

INSTANTIATE_TEST_SUITE_P(PluginRefusal, Broken, ::testing::ValuesIn(kBreakages));

// Where the sentence is another layer's, or holds numbers of this build.
TEST(PluginRefusal, NamesBothVersions) {
  const auto broken = [](const char* how) {
    ::setenv("BROKEN_PLUGIN", how, 1);
    const std::string said = loading(plugin_path("broken"));
    ::unsetenv("BROKEN_PLUGIN");
    EXPECT_FALSE(there("BrokenFresh"));
    return said;
  };
  EXPECT_NE(broken("abi").find("built for plugin ABI version 99; this Treenail (" +
                               std::string(tn_version()) + ") has version 1"),
            std::string::npos);
  EXPECT_NE(broken("host").find("built for a later Treenail"), std::string::npos);
  EXPECT_EQ(broken("grammar").rfind("InvalidArgument: plugin ", 0), 0U);
  EXPECT_EQ(broken("unknown op").rfind("NotFound: plugin ", 0), 0U);
  EXPECT_EQ(broken("taken kernel").rfind("AlreadyExists: plugin ", 0), 0U);
}

TEST(PluginRefusal, AFileThatIsNoPlugin) {
  EXPECT_EQ(
      loading("/nonexistent/plugin.so").rfind("NotFound: no plugin at /nonexistent/plugin.so: ", 0),
      0U);
  const std::string text = ::testing::TempDir() + "capi_no_library.so";
  std::FILE* file = std::fopen(text.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("no library\n", file);
  std::fclose(file);
  EXPECT_EQ(loading(text),
            "FailedPrecondition: the plugin " + text + " is no shared library: it is no ELF file");
  std::remove(text.c_str());
  const std::string core = test_directory() + "/../lib/libtreenail.so";
  EXPECT_EQ(loading(core), "FailedPrecondition: " + core +
                               " is no Treenail plugin: it does not export tn_plugin_init");
  Status status;
  tn_load_plugin(nullptr, status);
  EXPECT_EQ(status.said(), "InvalidArgument: path is NULL");
}

// The variable is read once per process: each case is a process of its own, which looks at the
// registry and exits.
class PluginPath : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  void TearDown() override { ::unsetenv("TREENAIL_PLUGIN_PATH"); }

  [[noreturn]] static void say(const char* op) {
    Status status;
    const tn_op* found = tn_op_find(op, status);
    std::fprintf(stderr, "%s: %s\n", op, found != nullptr ? "there" : status.said().c_str());
    std::_Exit(found != nullptr ? 0 : 1);
  }
};

// In one process: refused, then repaired and loaded, then its op runs.
[[noreturn]] void repair() {
  ::setenv("BROKEN_PLUGIN", "no run", 1);
  const std::string refused = loading(plugin_path("broken"));
  ::unsetenv("BROKEN_PLUGIN");
  const std::string accepted = loading(plugin_path("broken"));
  const Tensor x = floats({4});
  const tn_tensor* input = x.get();
  tn_tensor* out = nullptr;
  Status status;
  tn_execute("BrokenFresh", &input, 1, nullptr, nullptr, 0, &out, 1, status);
  const float value = out != nullptr ? values<float>(out).at(0) : 0;
  std::fprintf(stderr, "%s; %s; %g\n", refused.substr(0, 15).c_str(), accepted.c_str(), value);
  std::_Exit(0);
}

TEST_F(PluginPath, ARepairedPluginLoads) {
  EXPECT_EXIT(repair(), ::testing::ExitedWithCode(0), "InvalidArgument; Ok; 4");
}

TEST_F(PluginPath, NamesFiles) {
  ::setenv("TREENAIL_PLUGIN_PATH",
           (":" + plugin_path("features") + ":" + plugin_path("example")).c_str(), 1);
  EXPECT_EXIT(say("Cube"), ::testing::ExitedWithCode(0), "Cube: there");
  EXPECT_EXIT(say("Affine"), ::testing::ExitedWithCode(0), "Affine: there");
  EXPECT_EXIT(say("ClashFresh"), ::testing::ExitedWithCode(1), "ClashFresh: NotFound");
}

TEST_F(PluginPath, NamesDirectories) {
  const std::string directory = ::testing::TempDir() + "capi_plugin_path";
  const std::string link = directory + "/ours.so";
  std::remove(link.c_str());
  ::rmdir(directory.c_str());
  ASSERT_EQ(std::system(("mkdir '" + directory + "' && ln -s '" + plugin_path("example") + "' '" +
                         link + "'")
                            .c_str()),
            0);
  ::setenv("TREENAIL_PLUGIN_PATH", directory.c_str(), 1);
  EXPECT_EXIT(say("Cube"), ::testing::ExitedWithCode(0), "Cube: there");
  std::remove(link.c_str());
  ::rmdir(directory.c_str());
}

TEST_F(PluginPath, AnEntryThatIsNotThereIsAnError) {
  ::setenv("TREENAIL_PLUGIN_PATH", "/nonexistent/plugin.so", 1);
  EXPECT_EXIT(say("Add"), ::testing::ExitedWithCode(1),
              "Add: NotFound: TREENAIL_PLUGIN_PATH names /nonexistent/plugin.so");
}

}  // namespace
}  // namespace capi_test
