// SPDX-License-Identifier: Apache-2.0
// Graphs placed by cost: what nodes ask for, state, companions and memory come before the model.
#include "framework/placement/cost_placer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using Reason = CostPlacement::Reason;

constexpr auto everywhere = [](const OpInstance&, const std::string&) { return true; };
constexpr auto at_home = [](const Node&) { return kNoHome; };
constexpr auto no_function = [](std::string_view) -> const Function* { return nullptr; };

class ByCost : public ::testing::Test {
 protected:
  ByCost() {
    for (const char* name :
         {"/job:w/replica:0/task:0/device:CPU:0", "/job:w/replica:0/task:1/device:CPU:0",
          "/job:w/replica:0/task:2/device:CPU:0"})
      names.push_back(parse_device_name(name));
    // Computing is dear and sending cheap.
    model.devices.push_back({parse_device_name("/device:CPU:*"), {1e9, 1e9, 1e-6}});
    model.links.push_back({{}, {}, 1e-9, 1e15});
  }

  CostPlacement placed(bool soft = false) {
    devices = placement_devices(names);
    return place_by_cost(*b.graph, devices, soft, everywhere, at_home, no_function, model);
  }
  int32_t of(const CostPlacement& found, Output value) {
    return found.places[static_cast<size_t>(value.node->id())];
  }
  Reason reason(const CostPlacement& found, Output value) {
    const auto at = std::ranges::find(found.nodes, value.node) - found.nodes.begin();
    return found.reasons[static_cast<size_t>(at)];
  }
  Output input(const char* name = "x") {
    return b.placeholder(DType::kFloat32, {1000, 1000}, name);
  }
  Output at(const char* device, Output value) {
    b.graph->set_device(*value.node, device);
    return value;
  }

  test::GraphBuilder b;
  std::vector<DeviceName> names;
  std::vector<PlacementDevice> devices;
  CostModel model;
};

TEST_F(ByCost, SpreadsWhatMayRunSideBySide) {
  const Output x = input();
  std::vector<Output> values;
  for (int i = 0; i < 3; ++i) values.push_back(b.op("Exp", {x}));
  const CostPlacement found = placed();
  std::vector<int32_t> places;
  for (const Output& value : values) places.push_back(of(found, value));
  std::ranges::sort(places);
  EXPECT_EQ(places, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(of(found, x), 0);
  EXPECT_EQ(reason(found, x), Reason::kHandsOn);
  EXPECT_EQ(reason(found, values[0]), Reason::kPredicted);
}

TEST_F(ByCost, StaysTogetherWhereSendingIsDear) {
  model.links = {{{}, {}, 1.0, 1e3}};
  const Output x = input();
  for (int i = 0; i < 3; ++i) b.op("Exp", {x});
  const CostPlacement found = placed();
  for (const int32_t place : found.places) EXPECT_EQ(place, 0);
  EXPECT_EQ(found.choice.candidates[found.choice.chosen].strategy, "single device 0");
}

TEST_F(ByCost, RequestsComeFirstPartlyOnesToo) {
  const Output x = input();
  const Output asked = at("/job:w/task:2", b.op("Exp", {x}));
  names.push_back(parse_device_name("/job:w/replica:0/task:2/device:CPU:1"));
  const Output either = at("/task:2", b.op("Exp", {x}));
  const CostPlacement found = placed();
  EXPECT_GE(of(found, asked), 2);
  EXPECT_GE(of(found, either), 2);
  EXPECT_NE(of(found, either), of(found, asked));  // of two CPUs of the task each takes one
  EXPECT_EQ(reason(found, asked), Reason::kPredicted);
  at("/task:1/cpu:0", asked);
  EXPECT_EQ(of(placed(), asked), 1);
  EXPECT_EQ(reason(placed(), asked), Reason::kAsked);
  at("/gpu:0", asked);
  EXPECT_THROW(placed(), Error);
  EXPECT_EQ(of(placed(true), asked), 0);
}

TEST_F(ByCost, StateMovesWithAllThatWorksOnIt) {
  const Output x = input();
  const Tensor rate = Tensor::scalar(0.1f);
  std::vector<std::vector<Output>> units;
  for (const char* name : {"v", "w"}) {
    const Output handle = b.variable(DType::kFloat32, {1000, 1000}, name);
    const Output slot = b.variable(DType::kFloat32, {1000, 1000}, concat(name, "/Momentum"));
    const Output read = b.read(handle, DType::kFloat32);
    const Output product = b.op("MatMul", {x, read});
    Node& apply = b.node("ResourceApplyMomentum",
                         {handle, slot, b.constant(rate), product, b.constant(rate)});
    units.push_back({handle, slot, read, {&apply, 0}});
  }
  const CostPlacement found = placed();
  for (const auto& unit : units)
    for (const Output& member : unit) EXPECT_EQ(of(found, member), of(found, unit[0]));
  EXPECT_NE(of(found, units[0][0]), of(found, units[1][0]));
  // 8 MB of state each.
  const auto& tasks = found.problem.tasks;
  const auto task = std::ranges::find(found.nodes, units[0][0].node) - found.nodes.begin();
  const auto unit = static_cast<size_t>(tasks[static_cast<size_t>(task)].unit);
  EXPECT_EQ(found.problem.units[unit].state_bytes, 8'000'000);
}

TEST_F(ByCost, CompanionsStayTogether) {
  const Output x = input();
  const Output a = b.op("Exp", {x}, {}, "a"), c = b.op("Sin", {x}, {}, "c");
  b.graph->set_colocated(*c.node, std::vector<std::string>{"a"});
  const Output d = b.op("Cos", {x});
  const CostPlacement found = placed();
  EXPECT_EQ(of(found, a), of(found, c));
  EXPECT_NE(of(found, a), of(found, d));
}

TEST_F(ByCost, MemoryDecidesWhereTimeDoesNot) {
  model.links = {{{}, {}, 1.0, 1e3}};  // one device would be fastest
  for (DeviceModel& device : model.devices) device.memory_bytes = 5'000'000;
  for (const char* name : {"u", "v", "w"}) {
    const Output handle = b.variable(DType::kFloat32, {1000, 1000}, name);
    b.op("Shape", {b.read(handle, DType::kFloat32)});
  }
  const CostPlacement found = placed();
  for (const int64_t peak : found.choice.timeline.peak_bytes) EXPECT_LE(peak, 5'000'000);
  model.devices[0].memory_bytes = 3'000'000;
  try {
    placed();
    ADD_FAILURE() << "placed where it does not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_NE(error.message().find("no placement fits the memory of the devices; the nearest needs"
                                   "\n  /job:w/replica:0/task:0/device:CPU:0: 4000"),
              std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find("of which it has 3000000"), std::string::npos);
  }
}

TEST_F(ByCost, MeasuredTimesComeBeforeEstimates) {
  const Output x = input();
  const Output a = b.op("Exp", {x}, {}, "a"), c = b.op("Sin", {x}, {}, "c");
  auto profile = std::make_shared<PlacementProfile>();
  profile->add("CPU", "c", std::vector<std::string>{"a"}, 6'000'000);
  profile->add("CPU", "c", std::vector<std::string>{"a"}, 2'000'000);
  model.costs.profile = profile;
  names.resize(1);
  const CostPlacement found = placed();
  const auto seconds = [&](Output value) {
    const auto task = std::ranges::find(found.nodes, value.node) - found.nodes.begin();
    EXPECT_TRUE(found.measured[static_cast<size_t>(task)]);
    return found.problem.cost(static_cast<int32_t>(task), 0);
  };
  EXPECT_DOUBLE_EQ(seconds(a) + seconds(c), 0.004);  // the fused share the mean
  EXPECT_DOUBLE_EQ(seconds(a), seconds(c));
  EXPECT_DOUBLE_EQ(found.choice.timeline.makespan, 0.004);
}

TEST_F(ByCost, UnknownSizesAreAssumed) {
  const Output x = b.placeholder(DType::kFloat32, {kUnknown, 10}, "x");
  const Output y = b.op("Exp", {x});
  model.costs.unknown_dimension = 100;
  b.op("Neg", {y});
  const CostPlacement found = placed();
  const auto made = std::ranges::find_if(found.problem.values, [&](const auto& value) {
    return found.nodes[static_cast<size_t>(value.producer)] == y.node;
  });
  ASSERT_NE(made, found.problem.values.end());
  EXPECT_EQ(made->bytes, 4000);
}

// The same on every call, and never against a request or a companion, over random graphs.
TEST_F(ByCost, IsDeterministicAndKeepsItsPromises) {
  std::mt19937 random(5);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 60; ++round) {
    b = test::GraphBuilder();
    std::vector<Output> values = {input()};
    std::vector<std::string> asked(40);
    for (size_t i = 0; i < 40; ++i) {
      values.push_back(b.op("Add", {values[below(values.size())], values[below(values.size())]}, {},
                            concat("n", i)));
      if (below(5) == 0) {
        asked[i] = concat("/job:w/task:", below(3));
        at(asked[i].c_str(), values.back());
      } else if (below(5) == 0 && i > 0) {
        b.graph->set_colocated(*values.back().node,
                               std::vector<std::string>{concat("n", below(i))});
      }
    }
    CostPlacement found;
    try {
      found = placed();
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("with which it is colocated"), std::string::npos);
      continue;
    }
    EXPECT_EQ(found.places, placed().places);
    for (const Output& value : values) {
      const DeviceName& name = names[static_cast<size_t>(of(found, value))];
      if (!value.node->device().empty()) {
        EXPECT_TRUE(satisfies(name, parse_device_name(value.node->device())));
      }
      for (const std::string& other : value.node->colocated_with())
        EXPECT_EQ(of(found, value), of(found, {b.graph->find(other), 0}));
    }
  }
}

}  // namespace
}  // namespace treenail
