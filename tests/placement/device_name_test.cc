// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/device_name.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"
#include "framework/placement/placer.h"
#include "tests/support/graph_builder.h"

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

TEST(Placer, RefusesADeviceThatIsNotThere) {
  test::GraphBuilder b;
  const Output c = b.constant(Tensor::scalar(1.0f), "c");
  for (const char* fine : {"", "/cpu:0", "/job:localhost/device:CPU:*", "/task:0"}) {
    b.graph->set_device(*c.node, fine);
    EXPECT_EQ(place(*b.graph, local_devices(), false), std::vector<int32_t>{0}) << fine;
  }
  b.graph->set_device(*c.node, "/gpu:0");
  try {
    place(*b.graph, local_devices(), false);
    ADD_FAILURE() << "placed on a GPU that is not there";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("[Const node \"c\"] cannot be placed on \"/gpu:0\""),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(place(*b.graph, local_devices(), true), std::vector<int32_t>{0});
}

class ManyDevices : public ::testing::Test {
 protected:
  Output at(const char* device, Output value) {
    b.graph->set_device(*value.node, device);
    return value;
  }
  int32_t place_of(Output value, bool soft = false) {
    return place(*b.graph, devices, soft)[static_cast<size_t>(value.node->id())];
  }
  std::string refusal() {
    try {
      place(*b.graph, devices, false);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  test::GraphBuilder b;
  const std::vector<DeviceName> devices = local_devices(4);
  const Tensor one = Tensor::scalar(1.0f);
};

TEST_F(ManyDevices, PartialRequestsTakeTheFirstThatSatisfies) {
  const Output c = b.constant(one), d = b.op("Neg", {c}), e = b.op("Neg", {c});
  at("/job:localhost/device:CPU:2", d);
  at("/device:CPU:*", e);
  EXPECT_EQ(place_of(d), 2);
  EXPECT_EQ(place_of(e), 0);
  EXPECT_EQ(place_of(c), 0);
}

TEST_F(ManyDevices, StateStaysWhereItIs) {
  const Output v = at("/cpu:3", b.variable(DType::kFloat32, {}, "v"));
  const Output read = b.read(v, DType::kFloat32);
  const Output next = b.op("Neg", {read});
  const Output assign = b.op("AssignVariableOp", {v, next});
  EXPECT_EQ(place_of(read), 3);
  EXPECT_EQ(place_of(assign), 3);
  EXPECT_EQ(place_of(next), 0);
  at("/cpu:1", read);
  EXPECT_NE(refusal().find("what it works on, \"v\", is on /job:localhost/replica:0/task:0/device:"
                           "CPU:3"),
            std::string::npos)
      << refusal();
  EXPECT_EQ(place_of(read, true), 3);
}

TEST_F(ManyDevices, ValuesOfNothingGoToTheirOnlyReader) {
  const Output c = b.constant(one), d = b.constant(one);
  const Output x = at("/cpu:2", b.op("Neg", {c}));
  b.op("Add", {at("/cpu:1", b.op("Neg", {d})), d});
  EXPECT_EQ(place_of(x), 2);
  EXPECT_EQ(place_of(c), 2);
  EXPECT_EQ(place_of(d), 0);
}

TEST_F(ManyDevices, ARequestThatNothingMeetsIsRefusedOrSoft) {
  const Output c = at("/cpu:7", b.constant(one, "c"));
  EXPECT_EQ(refusal(),
            "[Const node \"c\"] cannot be placed on \"/cpu:7\": this session has "
            "/job:localhost/replica:0/task:0/device:CPU:0, "
            "/job:localhost/replica:0/task:0/device:CPU:1, "
            "/job:localhost/replica:0/task:0/device:CPU:2, "
            "/job:localhost/replica:0/task:0/device:CPU:3; allow_soft_placement runs it there");
  EXPECT_EQ(place_of(c, true), 0);
}

}  // namespace
}  // namespace treenail
