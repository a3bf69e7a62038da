// SPDX-License-Identifier: Apache-2.0
// What the tests of wrong calls have in common.
#pragma once

#include <gtest/gtest.h>

#include "tests/capi/support.h"

namespace capi_test {

class Hostile : public ::testing::Test {
 protected:
  // Says InvalidArgument and resets.
  void refused(const char* what) {
    EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT) << what << ": " << status.said();
    tn_status_set(status, TN_OK, nullptr);
  }
  Status status;
};

}  // namespace capi_test
