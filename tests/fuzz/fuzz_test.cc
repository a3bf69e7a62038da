// SPDX-License-Identifier: Apache-2.0
// Every target with what once broke it (tests/fuzz/<target>/), with its good inputs, with each of
// those cut short, and with random changes. Usually a few thousand, always the same; with
// TREENAIL_FUZZ_SECONDS for so long, from the seed TREENAIL_FUZZ_SEED on (gen/tools/proofs.py, in a
// build with sanitizers). An input that fails is kept below the build directory, in fuzz/<target>/:
// mend the parser, and move the file to tests/fuzz/<target>/.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "tests/fuzz/crash_file.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"

namespace treenail::test {

static void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.name; }

namespace {

constexpr int kUsualChanges = 3000;
constexpr int64_t kMemory = int64_t{256} << 20;

// Whether the bytes were accepted. A failure is one of the test.
bool run_one(const FuzzTarget& target, const std::string& input) {
  const CrashFile kept(target.name, input);
  try {
    target.run(input);
    return true;
  } catch (const Error&) {
    return false;
  } catch (const FuzzContradiction& found) {
    ADD_FAILURE() << found.what << "; the input is kept as " << CrashFile::write();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "it threw " << error.what() << ", which is no Error; the input is kept as "
                  << CrashFile::write();
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> corpus(const char* name) {
  std::vector<std::pair<std::string, std::string>> found;
  const char* source = std::getenv("TREENAIL_SOURCE_DIR");
  const std::filesystem::path folder =
      std::filesystem::path(source != nullptr ? source : ".") / "tests" / "fuzz" / name;
  if (!std::filesystem::is_directory(folder)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    found.emplace_back(entry.path().filename(), std::string(std::istreambuf_iterator<char>(stream),
                                                            std::istreambuf_iterator<char>()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

class Fuzz : public ::testing::TestWithParam<FuzzTarget> {
 protected:
  void SetUp() override {
    Allocator::host().set_limit(kMemory);
    seeds_ = GetParam().seeds();
    if (seeds_.empty()) GTEST_SKIP() << "this build lacks what the target reads with";
  }
  void TearDown() override { Allocator::host().set_limit(0); }
  std::vector<std::string> seeds_;
};

TEST_P(Fuzz, GoodInputsAreAccepted) {
  for (const std::string& seed : seeds_) {
    EXPECT_TRUE(run_one(GetParam(), seed));
    if (GetParam().repaired != nullptr) {
      EXPECT_EQ(GetParam().repaired(seed), seed);
    }
  }
}

TEST_P(Fuzz, WhatOnceBrokeIt) {
  for (const auto& [name, input] : corpus(GetParam().name)) {
    SCOPED_TRACE(name);
    run_one(GetParam(), input);
  }
}

TEST_P(Fuzz, GoodInputsCutShort) {
  for (const std::string& seed : seeds_) {
    const size_t step = seed.size() / 1000 + 1;
    for (size_t size = 0; size < seed.size(); size += step)
      run_one(GetParam(), seed.substr(0, size));
  }
}

TEST_P(Fuzz, ChangedInputs) {
  using Clock = std::chrono::steady_clock;
  const FuzzTarget& target = GetParam();
  const int64_t seconds = env_int("TREENAIL_FUZZ_SECONDS", 1, 86400).value_or(0);
  const int64_t first = env_int("TREENAIL_FUZZ_SEED", 0, int64_t{1} << 40).value_or(1);
  std::vector<std::string> pool = seeds_;
  for (auto& [name, input] : corpus(target.name)) pool.push_back(std::move(input));
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  int64_t runs = 0, accepted = 0;
  Mutator mutator(static_cast<uint64_t>(first));
  while ((seconds == 0 ? runs < kUsualChanges : Clock::now() < end) && !HasFailure()) {
    std::string input = mutator.mutated(pool);
    if (target.repaired != nullptr && mutator.below(4) != 0) input = target.repaired(input);
    const bool good = run_one(target, input);
    ++runs;
    if (!good) continue;
    ++accepted;
    // What is still accepted leads further; the good ones stay in the pool.
    if (pool.size() < 4096) {
      pool.push_back(std::move(input));
    } else {
      pool[seeds_.size() + mutator.below(pool.size() - seeds_.size())] = std::move(input);
    }
  }
  if (seconds != 0)
    std::printf("%s: %lld inputs, %lld accepted, from seed %lld\n", target.name,
                static_cast<long long>(runs), static_cast<long long>(accepted),
                static_cast<long long>(first));
  EXPECT_GT(runs, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz,
                         ::testing::ValuesIn(fuzz_targets().begin(), fuzz_targets().end()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The harness itself notices what it is there to notice.
TEST(FuzzHarness, SeesWhatIsNoError) {
  static const FuzzTarget kThrows = {
      "harness", [](std::string_view) { throw std::length_error("size"); }, nullptr};
  static const FuzzTarget kContradicts = {
      "harness", [](std::string_view) { fuzz_require(false, "it is not so"); }, nullptr};
  EXPECT_NONFATAL_FAILURE(run_one(kThrows, "x"), "which is no Error");
  EXPECT_NONFATAL_FAILURE(run_one(kContradicts, "x"), "it is not so");
}

TEST(FuzzHarness, KeepsWhatKillsTheProcess) {
  EXPECT_DEATH(
      {
        const CrashFile kept("harness", "killer");
        std::abort();
      },
      "fuzz/harness/[0-9a-f]{8}");
}

TEST(FuzzHarness, ChangesAreTheSameForASeed) {
  const std::vector<std::string> pool = {"abcdefgh", std::string(100, 'x')};
  Mutator one(7), two(7), other(8);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string text = one.mutated(pool);
    EXPECT_EQ(text, two.mutated(pool));
    differ += text != other.mutated(pool);
  }
  EXPECT_GT(differ, 90);
}

}  // namespace
}  // namespace treenail::test

// The same for libFuzzer (link with clang++ -fsanitize=fuzzer instead of gtest_main):
// TREENAIL_FUZZ_TARGET names the target.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using treenail::test::fuzz_targets;
  static const treenail::test::FuzzTarget& target = []() -> const treenail::test::FuzzTarget& {
    const char* name = std::getenv("TREENAIL_FUZZ_TARGET");
    for (const auto& known : fuzz_targets()) {
      if (name != nullptr && std::string_view(known.name) == name) return known;
    }
    std::abort();
  }();
  try {
    target.run({reinterpret_cast<const char*>(data), size});
  } catch (const treenail::Error&) {
  }
  return 0;
}
