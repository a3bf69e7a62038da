// SPDX-License-Identifier: Apache-2.0
// What a failing call said: "InvalidArgument: text", or "no error". EXPECT_EQ on it states code and
// sentence in one line.
#pragma once

#include <string>

#include "framework/base/error.h"

namespace treenail::testing {

template <class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    return concat(code_name(error.code()), ": ", error.message());
  }
  return "no error";
}

}  // namespace treenail::testing
