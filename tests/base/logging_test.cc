// SPDX-License-Identifier: Apache-2.0
// Nothing is printed unless asked for. The level is read once per process, so each case runs in a
// child.
#include "framework/base/logging.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace treenail {
namespace {

[[noreturn]] void log_all_and_exit(const char* level) {
  if (level == nullptr) {
    ::unsetenv("TREENAIL_LOG");
  } else {
    ::setenv("TREENAIL_LOG", level, 1);
  }
  log(LogLevel::kDebug, "one ", 1);
  log(LogLevel::kWarning, "two ", 2);
  log(LogLevel::kError, "three ", 3);
  std::_Exit(0);
}

TEST(LoggingDeathTest, SilentByDefault) {
  EXPECT_EXIT(log_all_and_exit(nullptr), ::testing::ExitedWithCode(0), "^$");
}

TEST(LoggingDeathTest, LevelAndAbove) {
  EXPECT_EXIT(log_all_and_exit("warning"), ::testing::ExitedWithCode(0),
              "^treenail warning: two 2\ntreenail error: three 3\n$");
  EXPECT_EXIT(log_all_and_exit("debug"), ::testing::ExitedWithCode(0), "treenail debug: one 1\n");
}

TEST(LoggingDeathTest, NonsenseLevelIsSaidAndWarningsAreShown) {
  EXPECT_EXIT(
      log_all_and_exit("loud"), ::testing::ExitedWithCode(0),
      "TREENAIL_LOG is \"loud\"; needed is debug, info, warning or error\ntreenail warning: two 2");
}

}  // namespace
}  // namespace treenail
