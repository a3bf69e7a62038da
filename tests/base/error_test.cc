// SPDX-License-Identifier: Apache-2.0
// Errors and the text they are made of.
#include "framework/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace treenail {
namespace {

TEST(Error, CarriesCodeAndSentence) {
  const Error error = invalid_argument("a is ", 3, ", needed ", int64_t{-4});
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_STREQ(error.what(), "a is 3, needed -4");
}

TEST(Error, PrefixKeepsTheCode) {
  const Error error =
      out_of_range("indices = 7 is not in [0, 3)").with_prefix("[Gather node \"g\"] ");
  EXPECT_EQ(error.code(), Code::kOutOfRange);
  EXPECT_EQ(error.message(), "[Gather node \"g\"] indices = 7 is not in [0, 3)");
}

TEST(Error, IsCaughtAsStandardException) {
  try {
    throw data_loss("x");
  } catch (const std::exception& caught) {
    EXPECT_STREQ(caught.what(), "x");
    EXPECT_NE(dynamic_cast<const Error*>(&caught), nullptr);
  }
}

TEST(Error, NumbersAreThoseOfGrpc) {
  EXPECT_EQ(static_cast<int>(Code::kInvalidArgument), 3);
  EXPECT_EQ(static_cast<int>(Code::kUnauthenticated), 16);
  EXPECT_EQ(code_name(Code::kResourceExhausted), "ResourceExhausted");
  EXPECT_EQ(code_name(static_cast<Code>(99)), "Unknown");
}

TEST(Text, NumbersAreShortestAndReadBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.1f), "0.1");
  EXPECT_EQ(number_text(1.0), "1");
  EXPECT_EQ(number_text(1e300), "1e+300");
  for (const double value : {1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0}) {
    EXPECT_EQ(std::strtod(number_text(value).c_str(), nullptr), value);
  }
}

TEST(Text, NonFiniteNumbersAreSpelledAsInPython) {
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(number_text(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(number_text(std::numeric_limits<float>::infinity()), "inf");
}

struct Named {};
std::string to_text(const Named&) { return "<named>"; }

TEST(Text, ConcatTakesEveryKind) {
  EXPECT_EQ(concat("a", std::string("b"), 'c', true, uint64_t{18446744073709551615u}, int8_t{-1},
                   0.5f, Named()),
            "abctrue18446744073709551615-10.5<named>");
  EXPECT_EQ(concat(), "");
}

}  // namespace
}  // namespace treenail
