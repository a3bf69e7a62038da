// SPDX-License-Identifier: Apache-2.0
#include "framework/device/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "framework/base/error.h"
#include "tests/support/idle_device.h"

namespace treenail {
namespace {

using test::IdleDevice;

std::vector<std::unique_ptr<Device>> one(const char* name) {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<IdleDevice>(parse_device_name(name)));
  return devices;
}

template <class F>
Code code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::kOk;
}

TEST(Device, CpusShareTheHostsMemoryAndComputeAtOnce) {
  Device &first = cpu_device(), &third = cpu_device(2);
  EXPECT_EQ(to_text(first.name()), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(to_text(third.name()), "/job:localhost/replica:0/task:0/device:CPU:2");
  EXPECT_EQ(&cpu_device(2), &third);
  EXPECT_TRUE(first.is_host() && first.folds());
  void* const memory = third.allocate(4);
  third.copy_in(memory, "abc", 4);
  char out[4] = {};
  first.copy_from_peer(out, third, memory, 4);
  EXPECT_STREQ(out, "abc");
  first.wait();
  third.deallocate(memory, 4);
}

TEST(Device, ASessionHasOneCpuAndAllOthersUnlessToldOtherwise) {
  add_accelerators(one("/job:localhost/replica:0/task:0/device:IDLE:0"));
  add_accelerators(one("/job:localhost/replica:0/task:0/device:IDLE:1"));
  EXPECT_EQ(session_devices({}).size(), 3U);
  EXPECT_EQ(session_devices({{"CPU", 4}, {"IDLE", 1}}).size(), 5U);
  EXPECT_EQ(session_devices({{"CPU", 0}, {"IDLE", 0}}).size(), 1U);
  EXPECT_EQ(code_of([] { add_accelerators(one("/job:localhost/replica:0/task:0/device:IDLE:1")); }),
            Code::kAlreadyExists);
  EXPECT_EQ(code_of([] { add_accelerators(one("/device:IDLE:2")); }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([] { add_accelerators(one("/job:localhost/task:0/device:CPU:9")); }),
            Code::kInvalidArgument);
  EXPECT_EQ(session_devices({}).size(), 3U);
}

TEST(Device, WhoWaitsIsToldThatItIsLost) {
  IdleDevice device(parse_device_name("/job:localhost/task:0/device:IDLE:7"));
  EXPECT_EQ(code_of([&] { device.wait(); }), Code::kUnavailable);
}

}  // namespace
}  // namespace treenail
