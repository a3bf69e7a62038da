// SPDX-License-Identifier: Apache-2.0
#include "framework/device/device_name.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace treenail {
namespace {

TEST(DeviceName, ReadsLongAndShortForms) {
  EXPECT_EQ(to_text(parse_device_name("/job:worker/replica:0/task:2/device:GPU:1")),
            "/job:worker/replica:0/task:2/device:GPU:1");
  EXPECT_EQ(to_text(parse_device_name("/cpu:0")), "/device:CPU:0");
  EXPECT_EQ(to_text(parse_device_name("/job:ps/task:3/gpu:*")), "/job:ps/task:3/device:GPU:*");
  EXPECT_EQ(to_text(parse_device_name("/device:XPU")), "/device:XPU:*");
  EXPECT_EQ(parse_device_name(""), DeviceName());
}

TEST(DeviceName, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"cpu:0", "/", "/cpu", "/cpu:", "/cpu:-1", "/cpu:x", "/cpu:99999999999",
                           "/job:", "/job:a b", "/device::0", "//cpu:0", "/rank:1", "/cpu:0/"}) {
    try {
      parse_device_name(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(error.message().find(text), std::string::npos) << error.what();
    }
  }
}

TEST(DeviceName, InnerScopesReplacePartByPart) {
  const DeviceName merged = merge_device_names(parse_device_name("/job:worker/task:1/gpu:0"),
                                               parse_device_name("/task:2/cpu:0"));
  EXPECT_EQ(to_text(merged), "/job:worker/task:2/device:CPU:0");
}

}  // namespace
}  // namespace treenail
