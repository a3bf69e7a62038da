// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/placer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/idle_device.h"

namespace treenail {
namespace {

std::vector<PlacementDevice> cpus(int count) {
  return placement_devices(session_devices({{"CPU", count}}));
}

constexpr auto everywhere = [](const OpInstance&, const std::string&) { return true; };
constexpr auto at_home = [](const Node&) { return kNoHome; };

TEST(Placer, RefusesADeviceThatIsNotThere) {
  test::GraphBuilder b;
  const Output c = b.constant(Tensor::scalar(1.0f), "c");
  for (const char* fine : {"", "/cpu:0", "/job:localhost/device:CPU:*", "/task:0"}) {
    b.graph->set_device(*c.node, fine);
    EXPECT_EQ(place(*b.graph, cpus(1), false, everywhere, at_home), std::vector<int32_t>{0})
        << fine;
  }
  b.graph->set_device(*c.node, "/gpu:0");
  try {
    place(*b.graph, cpus(1), false, everywhere, at_home);
    ADD_FAILURE() << "placed on a GPU that is not there";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("[Const node \"c\"] cannot be placed on \"/gpu:0\""),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(place(*b.graph, cpus(1), true, everywhere, at_home), std::vector<int32_t>{0});
}

class ManyDevices : public ::testing::Test {
 protected:
  Output at(const char* device, Output value) {
    b.graph->set_device(*value.node, device);
    return value;
  }
  int32_t place_of(Output value, bool soft = false) {
    return place(*b.graph, devices, soft, everywhere,
                 at_home)[static_cast<size_t>(value.node->id())];
  }
  std::string refusal() {
    try {
      place(*b.graph, devices, false, everywhere, at_home);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  test::GraphBuilder b;
  std::vector<PlacementDevice> devices = cpus(4);
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

class OtherKind : public ManyDevices {
 protected:
  OtherKind() { devices = of({&cpu_device(), &other}); }
  static std::vector<PlacementDevice> of(const std::vector<Device*>& list) {
    return placement_devices(list);
  }
  std::vector<int32_t> places(bool soft = false) {
    return place(
        *b.graph, devices, soft,
        [](const OpInstance& op, const std::string& kind) {
          return kind == "OTHER" && (op.name() == "Neg" || op.def().any_device);
        },
        at_home);
  }
  std::string refusal() {
    try {
      places();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  int32_t number(Output value, bool soft = false) {
    return places(soft)[static_cast<size_t>(value.node->id())];
  }

  test::IdleDevice other{{"localhost", 0, 0, "OTHER", 0}};
};

TEST_F(OtherKind, RunsWhatItHasAKernelForAndNothingElse) {
  const Output c = b.constant(one), neg = at("/device:OTHER:0", b.op("Neg", {c}));
  const Output view = at("/device:OTHER:0", b.op("Identity", {neg}));
  const Output plain = b.op("Exp", {neg});
  EXPECT_EQ(number(neg), 1);
  EXPECT_EQ(number(view), 1);
  EXPECT_EQ(number(plain), 0);
  const Output exp = at("/device:OTHER:0", b.op("Exp", {neg}, {}, "e"));
  EXPECT_EQ(refusal(),
            "[Exp node \"e\"] cannot be placed on /job:localhost/replica:0/task:0/device:OTHER:0: "
            "OTHER devices have no kernel for it with inputs (float32); allow_soft_placement runs "
            "it on the CPU");
  EXPECT_EQ(number(exp, true), 0);
  EXPECT_EQ(number(neg, true), 1);
}

TEST_F(OtherKind, SizesAreComputedOnTheHost) {
  const Output shape = b.constant(Tensor::vector<int32_t>({2, 3}));
  const Output axes = b.constant(Tensor::vector<int32_t>({1}));
  const Output kept = at("/device:OTHER:0", b.op("ReducedShape", {shape, axes}));
  EXPECT_EQ(number(kept), 0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(OtherKind, StateIsNeverMovedToWhereAKernelIs) {
  const Output v = at("/device:OTHER:0", b.variable(DType::kFloat32, {}, "v"));
  const Output read = b.read(v, DType::kFloat32);
  EXPECT_EQ(number(read), 1);
  b.op("AssignAddVariableOp", {v, read}, {}, "add");
  EXPECT_NE(refusal().find("[AssignAddVariableOp node \"add\"] cannot be placed on"),
            std::string::npos)
      << refusal();
  EXPECT_THROW(places(true), Error);
}

TEST_F(OtherKind, FunctionsGoToTheStateThatTheyAreGiven) {
  const NamedAttrs attrs = {
      {"index", int64_t{0}}, {"T", DType::kResource}, {"shape", PartialShape()}};
  const Output v = b.op("_Arg", {}, attrs), here = b.op("_Arg", {}, attrs);
  const Output read = b.read(v, DType::kFloat32);
  const Output other_read = at("/device:OTHER:0", b.read(here, DType::kFloat32));
  const Output asking = at("/cpu:0", b.read(v, DType::kFloat32));
  const auto home = [&](const Node& node) { return &node == v.node ? 1 : kNoHome; };
  const auto found = place(*b.graph, devices, false, everywhere, home);
  const auto number_of = [&](Output value) { return found[static_cast<size_t>(value.node->id())]; };
  EXPECT_EQ(number_of(v), 1);
  EXPECT_EQ(number_of(read), 1);
  EXPECT_EQ(number_of(asking), 1);
  EXPECT_EQ(number_of(other_read), 0);
  EXPECT_NE(
      state_is_elsewhere(*v.node, other.name())
          .message()
          .find("] names state on /job:localhost/replica:0/task:0/device:OTHER:0, which is no "
                "device of this session"),
      std::string::npos);
}

TEST_F(OtherKind, CallsOnlyHandValuesOn) {
  const Output v = at("/device:OTHER:0", b.variable(DType::kFloat32, {}, "v"));
  const Output call =
      b.op("StatefulPartitionedCall", {v, b.constant(one)},
           {{"f", FunctionAttr{"f"}}, {"Tout", std::vector<DType>{DType::kFloat32}}});
  at("/device:OTHER:0", call);
  EXPECT_EQ(number(call), 0);
  at("/device:OTHER:7", call);
  EXPECT_NE(refusal().find("cannot be placed on \"/device:OTHER:7\""), std::string::npos);
}

TEST_F(OtherKind, StateOfOneOperationIsInOneMemory) {
  const Output v = at("/device:OTHER:0", b.variable(DType::kFloat32, {}, "v"));
  const Output m = b.variable(DType::kFloat32, {}, "m");
  b.op("ResourceApplyMomentum", {v, m, b.constant(one), b.constant(one), b.constant(one)}, {},
       "apply");
  EXPECT_NE(refusal().find("[ResourceApplyMomentum node \"apply\"] works on state in the memory of "
                           "two devices: \"v\" is on"),
            std::string::npos)
      << refusal();
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

class Colocated : public ManyDevices {
 protected:
  // `value` must run beside these.
  Output beside(std::vector<std::string> names, Output value) {
    b.graph->set_colocated(*value.node, names);
    return value;
  }
  Output neg(const char* name) { return b.op("Neg", {input}, {}, name); }

  const Output input = b.constant(one, "input");
};

TEST_F(Colocated, FollowWhatIsAskedForOrWhereStateIs) {
  const Output x = beside({"y"}, neg("x"));  // before the node that it names
  const Output y = at("/cpu:2", neg("y"));
  const Output z = beside({"x"}, neg("z"));
  EXPECT_EQ(place_of(x), 2);
  EXPECT_EQ(place_of(z), 2);
  const Output v = at("/cpu:3", b.variable(DType::kFloat32, {}, "v"));
  const Output read = b.read(v, DType::kFloat32, "read");
  const Output with_read = beside({"read"}, neg("with_read"));
  const Output with_that = beside({"with_read"}, neg("with_that"));
  EXPECT_EQ(place_of(read), 3);
  EXPECT_EQ(place_of(with_read), 3);
  EXPECT_EQ(place_of(with_that), 3);
  EXPECT_EQ(place_of(y), 2);
}

TEST_F(Colocated, WhatIsNotThereHoldsTogether) {
  const Output x = beside({"gone"}, neg("x"));
  const Output y = at("/cpu:1", beside({"gone"}, neg("y")));
  const Output z = neg("z");
  EXPECT_EQ(place_of(x), 1);
  EXPECT_EQ(place_of(y), 1);
  EXPECT_EQ(place_of(z), 0);
}

TEST_F(Colocated, RequestsAreMetTogether) {
  const Output x = at("/device:CPU:*", neg("x"));
  const Output y = at("/job:localhost", beside({"x"}, neg("y")));
  const Output z = at("/cpu:1", beside({"x"}, neg("z")));
  EXPECT_EQ(place_of(x), 1);
  EXPECT_EQ(place_of(y), 1);
  EXPECT_EQ(place_of(z), 1);
}

TEST_F(Colocated, ContradictionsNameBothAlsoOverSoftPlacement) {
  at("/cpu:1", neg("x"));
  at("/cpu:2", beside({"x"}, neg("y")));
  EXPECT_EQ(refusal(),
            "[Neg node \"y\"] cannot be placed on \"/cpu:2\": \"x\", with which it is colocated, "
            "asks for \"/cpu:1\"");
  EXPECT_THROW(place(*b.graph, devices, true, everywhere, at_home), Error);
}

TEST_F(Colocated, StateOfTwoDevicesIsRefused) {
  const Output v = at("/cpu:1", b.variable(DType::kFloat32, {}, "v"));
  const Output w = at("/cpu:2", b.variable(DType::kFloat32, {}, "w"));
  b.read(v, DType::kFloat32, "r");
  beside({"r"}, b.read(w, DType::kFloat32, "q"));
  EXPECT_EQ(refusal(),
            "[ReadVariableOp node \"q\"] cannot be placed on /job:localhost/replica:0/task:0/"
            "device:CPU:2, where what it works on, \"w\", is: it is colocated with \"r\", which "
            "works on state on /job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_THROW(place(*b.graph, devices, true, everywhere, at_home), Error);
}

TEST_F(Colocated, AHandleThatMovesTakesItsReadersAlong) {
  const Output w = beside({"late"}, b.variable(DType::kFloat32, {}, "w"));
  const Output read = b.read(w, DType::kFloat32);
  const Output v = at("/cpu:3", b.variable(DType::kFloat32, {}, "v"));
  beside({"late"}, b.read(v, DType::kFloat32));
  EXPECT_EQ(place_of(w), 3);
  EXPECT_EQ(place_of(read), 3);
}

TEST_F(OtherKind, CompanionsGoToTheCpuTogether) {
  const Output neg = at("/device:OTHER:0", b.op("Neg", {b.constant(one)}, {}, "n"));
  const Output exp = b.op("Exp", {neg}, {}, "e");
  b.graph->set_colocated(*exp.node, std::vector<std::string>{"n"});
  EXPECT_NE(refusal().find("[Exp node \"e\"] cannot be placed on"), std::string::npos);
  EXPECT_EQ(number(exp, true), 0);
  EXPECT_EQ(number(neg, true), 0);
}

// Two CPUs of a worker, and two workers with a device of another kind each.
class ManyTasks : public ManyDevices {
 protected:
  ManyTasks() {
    std::vector<DeviceName> names;
    for (const char* name :
         {"/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0",
          "/job:worker/replica:0/task:0/device:CPU:1", "/job:worker/replica:0/task:1/device:CPU:0",
          "/job:worker/replica:0/task:1/device:OTHER:0"})
      names.push_back(parse_device_name(name));
    devices = placement_devices(names);
  }
};

TEST_F(ManyTasks, OnlyTheCpusOfATaskShareAMemory) {
  std::vector<int32_t> memories;
  for (const PlacementDevice& device : devices) memories.push_back(device.memory);
  EXPECT_EQ(memories, (std::vector<int32_t>{0, 1, 1, 3, 4}));
}

TEST_F(ManyTasks, StateInTheCpuMemoriesOfTwoTasksIsRefused) {
  const auto apply_to = [&](const char* v_device, const char* m_device) {
    b = test::GraphBuilder();
    const Output v = at(v_device, b.variable(DType::kFloat32, {}, "v"));
    const Output m = at(m_device, b.variable(DType::kFloat32, {}, "m"));
    b.op("ResourceApplyMomentum", {v, m, b.constant(one), b.constant(one), b.constant(one)}, {},
         "apply");
    return refusal();
  };
  EXPECT_EQ(apply_to("/job:worker/task:0/cpu:0", "/job:worker/task:0/cpu:1"), "");
  EXPECT_EQ(apply_to("/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"),
            "[ResourceApplyMomentum node \"apply\"] works on state in the memory of two devices: "
            "\"v\" is on /job:worker/replica:0/task:0/device:CPU:0, \"m\" on "
            "/job:worker/replica:0/task:1/device:CPU:0");
}

TEST_F(ManyTasks, CallsAndWhatHasNoKernelStayInTheirTask) {
  const Output call =
      at("/job:worker/task:1/device:OTHER:0",
         b.op("PartitionedCall", {b.constant(one)},
              {{"f", FunctionAttr{"f"}}, {"Tout", std::vector<DType>{DType::kFloat32}}}));
  const Output exp = at("/job:worker/task:1/device:OTHER:0", b.op("Exp", {call}));
  EXPECT_EQ(place_of(call), 3);
  const auto nowhere = [](const OpInstance&, const std::string&) { return false; };
  const auto places = place(*b.graph, devices, true, nowhere, at_home);
  EXPECT_EQ(places[static_cast<size_t>(exp.node->id())], 3);
}

}  // namespace
}  // namespace treenail
