// SPDX-License-Identifier: Apache-2.0
// ISA levels against two independent witnesses: /proc/cpuinfo and the compiler's own detection.
#include "framework/base/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace treenail {
namespace {

TEST(CpuFeatures, LevelsIncludeEachOther) {
  bool runs = true;
  for (const std::string_view level : isa_levels()) {
    // "sve" does without the dot product of the level below it.
    if (level != "sve") {
      EXPECT_LE(cpu_runs(level), runs) << level;
    }
    runs = cpu_runs(level);
    EXPECT_EQ(runs, missing_features(level).empty());
  }
  EXPECT_TRUE(cpu_runs(isa_levels().front()));
  EXPECT_TRUE(cpu_runs(best_level()));
}

TEST(CpuFeatures, UnknownLevelIsRefusedWithTheKnownOnes) {
  EXPECT_FALSE(cpu_runs("z80"));
  try {
    missing_features("z80");
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(error.message().find(isa_levels().front()), std::string::npos);
  }
}

#if defined(__x86_64__)
constexpr char kFeatureLine[] = "flags";
// Under qemu-user, /proc/cpuinfo is the host's.
bool emulated() {
  unsigned a = 0;
  char signature[13] = {};
  unsigned words[3] = {};
  __cpuid(0x40000000u, a, words[0], words[1], words[2]);
  std::memcpy(signature, words, sizeof words);
  return std::strcmp(signature, "TCGTCGTCGTCG") == 0;
}
#else
constexpr char kFeatureLine[] = "Features";
bool emulated() { return false; }
#endif

std::vector<std::string> features_the_kernel_lists() {
  std::vector<std::string> listed;
  if (emulated()) return listed;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; listed.empty() && std::getline(file, line);) {
    if (line.rfind(kFeatureLine, 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) listed.push_back(word);
  }
  return listed;
}

// Every feature found is one that the kernel lists, and the other way round for those of the
// levels.
TEST(CpuFeatures, AgreeWithTheKernel) {
  const std::vector<std::string> listed = features_the_kernel_lists();
  if (listed.empty()) {
    GTEST_SKIP()
        << "/proc/cpuinfo does not list this CPU's features (emulation, or this architecture)";
  }
  const auto lists = [&listed](const std::string& feature) {
    return std::find(listed.begin(), listed.end(), feature) != listed.end();
  };
  for (const std::string& feature : cpu_features()) EXPECT_TRUE(lists(feature)) << feature;
  for (const std::string_view level : isa_levels()) {
    std::istringstream missing(missing_features(level));
    for (std::string word; std::getline(missing, word, ',');) {
      word.erase(0, word.find_first_not_of(' '));
      EXPECT_FALSE(lists(word)) << word;
    }
  }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
TEST(CpuFeatures, AgreeWithTheCompiler) {
  EXPECT_EQ(cpu_runs("x86-64-v2"), __builtin_cpu_supports("x86-64-v2") != 0);
  EXPECT_EQ(cpu_runs("x86-64-v3"), __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(cpu_runs("x86-64-v4"), __builtin_cpu_supports("x86-64-v4") != 0);
}
#endif

class ChooseLevel : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("TREENAIL_CPU_ISA"); }
  void TearDown() override { ::unsetenv("TREENAIL_CPU_ISA"); }
  static Code code_of(std::span<const std::string_view> installed, std::string* text) {
    try {
      choose_level(installed);
    } catch (const Error& error) {
      *text = error.message();
      return error.code();
    }
    return Code::kOk;
  }
};

TEST(CpuFeatures, OnlyTheHighestLevelHasWideVectors) {
  if (full_width_avx512()) {
    EXPECT_EQ(best_level(), "x86-64-v4");
  }
}

TEST_F(ChooseLevel, TakesTheHighestThatRuns) {
  EXPECT_EQ(choose_level(isa_levels()), best_level());
  EXPECT_EQ(choose_level(isa_levels().first(1)), isa_levels().front());
}

TEST_F(ChooseLevel, EnvironmentForcesALowerOne) {
  ::setenv("TREENAIL_CPU_ISA", std::string(isa_levels().front()).c_str(), 1);
  EXPECT_EQ(choose_level(isa_levels()), isa_levels().front());
}

TEST_F(ChooseLevel, WhatCannotBeIsSaid) {
  std::string text;
  EXPECT_EQ(code_of({}, &text), Code::kFailedPrecondition);
  EXPECT_NE(text.find("installed kernel libraries: none; install Treenail's again, version "),
            std::string::npos)
      << text;
  ::setenv("TREENAIL_CPU_ISA", "z80", 1);
  EXPECT_EQ(code_of(isa_levels(), &text), Code::kInvalidArgument);
  ::setenv("TREENAIL_CPU_ISA", std::string(isa_levels().front()).c_str(), 1);
  EXPECT_EQ(code_of({}, &text), Code::kNotFound);
  const std::string_view highest = isa_levels().back();
  if (!cpu_runs(highest)) {
    ::setenv("TREENAIL_CPU_ISA", std::string(highest).c_str(), 1);
    EXPECT_EQ(code_of(isa_levels(), &text), Code::kFailedPrecondition);
    EXPECT_NE(text.find(missing_features(highest)), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace treenail
