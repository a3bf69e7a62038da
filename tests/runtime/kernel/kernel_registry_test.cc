// SPDX-License-Identifier: Apache-2.0
// Which kernel serves which op, and the loading of level libraries.
#include "framework/runtime/kernel/kernel_registry.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "build_info.h"
#include "framework/base/cpu_features.h"
#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel_library.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using testing::error_of;

const OpDef& op_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "X";
    OpDeclaration(d).input("x: T").input("i: Tidx").output("y: T").attr("T: type").attr(
        "Tidx: type");
    return d;
  }();
  return def;
}

OpInstance instance(DType t, DType index) {
  return resolve_op(op_def(), std::vector<DType>{t, index}, {});
}

std::unique_ptr<Kernel> floats(const PrepareContext&) { return nullptr; }
std::unique_ptr<Kernel> doubles(const PrepareContext&) { return nullptr; }

TEST(KernelRegistry, ConstraintsChoose) {
  KernelRegistry r;
  r.add("X", {{"T", {DType::kFloat32, DType::kFloat16}}}, floats);
  r.add("X", {{"T", {DType::kFloat64}}, {"Tidx", {DType::kInt32}}}, doubles);
  EXPECT_EQ(r.find(instance(DType::kFloat16, DType::kInt64)), &floats);
  EXPECT_EQ(r.find(instance(DType::kFloat64, DType::kInt32)), &doubles);
  EXPECT_TRUE(r.has("X"));
  EXPECT_FALSE(r.has("Y"));
}

TEST(KernelRegistry, SaysWhatIsThereWhenNothingFits) {
  KernelRegistry r;
  EXPECT_EQ(error_of([&] { r.find(instance(DType::kFloat32, DType::kInt32)); }),
            "Unimplemented: no kernel is registered for op \"X\"");
  r.add("X", {{"T", {DType::kFloat32, DType::kFloat16}}}, floats);
  r.add("X", {{"T", {DType::kFloat64}}, {"Tidx", {DType::kInt32}}}, doubles);
  EXPECT_EQ(error_of([&] { r.find(instance(DType::kInt8, DType::kInt32)); }),
            "Unimplemented: no kernel for op \"X\" with T = int8, Tidx = int32; registered are "
            "kernels for T in {float32, "
            "float16}; T in {float64}, Tidx in {int32}");
}

TEST(KernelRegistry, TwoForTheSameTypesAreOurMistake) {
  KernelRegistry r;
  r.add("X", {{"T", {DType::kFloat32}}}, floats);
  r.add("X", {{"T", {DType::kFloat64}}}, floats);
  EXPECT_EQ(
      error_of([&] {
        r.add("X", {{"T", {DType::kFloat64, DType::kInt8}}}, doubles);
      }),
      "Internal: two kernels for op \"X\": one for T in {float64}, one for T in {float64, int8}");
  EXPECT_EQ(error_of([&] { r.add("X", {}, doubles); }).substr(0, 9), "Internal:");
  EXPECT_EQ(error_of([&] {
              r.add("X", {{"Tidx", {DType::kInt32}}}, doubles);
            }).substr(0, 9),
            "Internal:");
}

TEST(KernelLibrary, TheBestInstalledLevelIsInUse) {
  const std::vector<std::string> levels = installed_kernel_levels();
  ASSERT_FALSE(levels.empty());
  std::string best;
  for (const std::string& level : levels) {
    if (cpu_runs(level)) best = level;
  }
  const char* forced = std::getenv("TREENAIL_CPU_ISA");
  EXPECT_EQ(kernel_level_in_use(), forced != nullptr ? forced : best);
  EXPECT_TRUE(KernelRegistry::instance().has("Add"));
}

// Each runs in a fresh process: a library stays open until its process ends.
class KernelLibraryDeathTest : public ::testing::Test {
 protected:
  KernelLibraryDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void print_level() {
    std::fprintf(stderr, "%s\n", error_of([] {
                                   std::fprintf(stderr, "level %s\n",
                                                kernel_level_in_use().c_str());
                                 }).c_str());
  }
  [[noreturn]] static void report() {
    print_level();
    std::exit(0);
  }
  // What is said of level libraries that `fill` makes, given the path of each.
  [[noreturn]] static void report_of(const std::vector<std::string>& levels,
                                     const std::function<void(const std::string&)>& fill) {
    {  // exit() destroys no local variable
      const test::TemporaryDirectory directory;
      for (const std::string& level : levels) {
        std::filesystem::create_directories(directory.file("kernels/" + level));
        fill(directory.file("kernels/" + level + "/libtreenail-kernels-cpu.so"));
      }
      ::unsetenv("TREENAIL_CPU_ISA");
      ::setenv("TREENAIL_LIBRARY_DIR", directory.path().c_str(), 1);
      print_level();
    }
    std::exit(0);
  }
  [[noreturn]] static void report_of_garbage(const std::vector<std::string>& levels) {
    report_of(levels, [](const std::string& path) { std::ofstream(path) << "not a library"; });
  }
  // With a library of tests/runtime/kernel/libraries in the lowest level's place.
  [[noreturn]] static void report_of_library(const std::string& name) {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    report_of({std::string(isa_levels()[0])}, [&](const std::string& path) {
      std::filesystem::copy_file(
          program.parent_path() / "plugins" / ("libtreenail-" + name + ".so"), path);
    });
  }
  // The words behind each sentence about a library that is not the one wanted.
  static std::string remedy() {
    const std::string number = std::to_string(build_info::kVersionMajor);
    return "; this CPU runs " + std::string(best_level()) +
           "; install Treenail's kernel libraries again, version " + build_info::kVersion +
           " .Debian: libtreenail" + number + ", Fedora: treenail-libs.";
  }
};

using testing_exit = ::testing::ExitedWithCode;

TEST_F(KernelLibraryDeathTest, ALowerLevelCanBeForced) {
  const std::string lowest = installed_kernel_levels().at(0);
  EXPECT_EXIT(
      {
        ::setenv("TREENAIL_CPU_ISA", lowest.c_str(), 1);
        report();
      },
      testing_exit(0), "level " + lowest + "\nno error");
}

TEST_F(KernelLibraryDeathTest, AnUnknownLevelIsRefused) {
  EXPECT_EXIT(
      {
        ::setenv("TREENAIL_CPU_ISA", "mmx", 1);
        report();
      },
      testing_exit(0), "InvalidArgument: .*TREENAIL_CPU_ISA is \"mmx\"");
}

TEST_F(KernelLibraryDeathTest, NoLibraryIsASentence) {
  EXPECT_EXIT(
      {
        ::setenv("TREENAIL_LIBRARY_DIR", "/nowhere", 1);
        report();
      },
      testing_exit(0),
      "FailedPrecondition: this CPU runs ISA level .*installed kernel libraries: none");
}

TEST_F(KernelLibraryDeathTest, GarbageIsASentence) {
  const std::string level(isa_levels()[0]);
  EXPECT_EXIT(report_of_garbage({level}), testing_exit(0),
              "FailedPrecondition: the kernel library of level " + level +
                  ", .*/libtreenail-kernels-cpu.so, is no shared library: it is no ELF file" +
                  remedy() + "\n");
}

TEST_F(KernelLibraryDeathTest, ALibraryOfAnotherBuildIsRefused) {
  EXPECT_EXIT(report_of_library("of-another-build"), testing_exit(0),
              "FailedPrecondition: .*/libtreenail-kernels-cpu.so is of build 0.0.7-0123456789ab, "
              "level another; this libtreenail is of build " +
                  std::string(build_info::kBuildId) + " and needs level " +
                  std::string(isa_levels()[0]) + " of it there" + remedy() + "\n");
}

TEST_F(KernelLibraryDeathTest, ALibraryOfAnotherLevelIsRefused) {
  EXPECT_EXIT(report_of_library("of-another-level"), testing_exit(0),
              "FailedPrecondition: .*/libtreenail-kernels-cpu.so is of build " +
                  std::string(build_info::kBuildId) + ", level another; .*" + remedy() + "\n");
}

TEST_F(KernelLibraryDeathTest, ALibraryThatHoldsNoKernelsIsRefused) {
  EXPECT_EXIT(report_of_library("example"), testing_exit(0),
              "FailedPrecondition: .*/libtreenail-kernels-cpu.so is no kernel library that this "
              "libtreenail knows; "
              ".*" +
                  remedy() + "\n");
}

// The levels that this CPU lacks do not count, wherever they come from.
TEST_F(KernelLibraryDeathTest, ALowerLevelThatWouldDoIsNamed) {
  const std::string lowest(isa_levels().front()), best(best_level());
  if (lowest == best) GTEST_SKIP() << "this CPU runs one level";
  EXPECT_EXIT(report_of_garbage({lowest, best}), testing_exit(0),
              "the kernel library of level " + best +
                  ", .*/libtreenail-kernels-cpu.so, is no shared library: it is no ELF file" +
                  remedy() + ", or remove that file: level " + lowest + " is used then\n");
}

}  // namespace
}  // namespace treenail
