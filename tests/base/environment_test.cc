// SPDX-License-Identifier: Apache-2.0
// Typed environment variables: every nonsense value is answered by a sentence.
#include "framework/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr const char* kName = "TREENAIL_TEST_VARIABLE";

class Environment : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv(kName); }
  static void set(const char* value) { ::setenv(kName, value, 1); }
  template <class F>
  static std::string message(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return error.message();
    }
    return "no Error";
  }
};

TEST_F(Environment, UnsetAndEmptyAreNoValue) {
  EXPECT_FALSE(env_text(kName).has_value());
  set("");
  EXPECT_FALSE(env_int(kName, 0, 9).has_value());
  EXPECT_FALSE(env_bytes(kName).has_value());
}

TEST_F(Environment, IntegersInRange) {
  set("1024");
  EXPECT_EQ(env_int(kName, 1, 1024), 1024);
  set("-3");
  EXPECT_EQ(env_int(kName, -3, 3), -3);
}

TEST_F(Environment, NonsenseIntegersAreNamed) {
  for (const char* value : {"0", "1025", "four", "4x", " 4", "4 ", "99999999999999999999", "1.5"}) {
    set(value);
    EXPECT_EQ(message([] { env_int(kName, 1, 1024); }),
              std::string("environment variable TREENAIL_TEST_VARIABLE is \"") + value +
                  "\"; needed is an integer from 1 to 1024");
  }
}

TEST_F(Environment, BytesWithSuffixes) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("1K"), 1024);
  EXPECT_EQ(parse_bytes("3m"), 3 << 20);
  EXPECT_EQ(parse_bytes("16GiB"), int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("2TB"), int64_t{2} << 40);
}

TEST_F(Environment, NonsenseBytesAreRefused) {
  for (const char* value :
       {"0", "-1", "G", "1X", "1Gi", "1 G", "9223372036854775807K", "1.5G", "1GG"}) {
    EXPECT_FALSE(parse_bytes(value).has_value()) << value;
  }
  set("lots");
  EXPECT_NE(
      message([] { env_bytes(kName); }).find("\"lots\"; needed is a positive number of bytes"),
      std::string::npos);
}

TEST_F(Environment, ChoicesAreListed) {
  constexpr std::string_view kChoices[] = {"debug", "info", "error"};
  set("info");
  EXPECT_EQ(env_choice(kName, kChoices), 1);
  set("verbose");
  EXPECT_EQ(
      message([&] { env_choice(kName, kChoices); }),
      "environment variable TREENAIL_TEST_VARIABLE is \"verbose\"; needed is debug, info or error");
}

}  // namespace
}  // namespace treenail
