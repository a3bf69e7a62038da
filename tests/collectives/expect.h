// SPDX-License-Identifier: Apache-2.0
// EXPECT_ERROR(expression, code, words): it throws an Error of that code whose text has the words.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

#define EXPECT_ERROR(expression, code, words)                                         \
  EXPECT_PRED2(::treenail::test::says,                                                \
               ::treenail::testing::error_of([&] { static_cast<void>(expression); }), \
               ::treenail::concat(code_name(code), "|", words))

namespace treenail::test {

inline bool says(const std::string& error, const std::string& wanted) {
  const size_t bar = wanted.find('|');
  return error.compare(0, bar + 1, wanted.substr(0, bar) + ":") == 0 &&
         error.find(wanted.substr(bar + 1)) != std::string::npos;
}

}  // namespace treenail::test
