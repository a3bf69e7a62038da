// SPDX-License-Identifier: Apache-2.0
// Placement over tasks whose state outlives the session: what stays and what moves, what tasks
// tell, and cost models as messages.
#include "framework/placement/cluster_placer.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/placement/cost_model_bytes.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using Reason = CostPlacement::Reason;

constexpr auto everywhere = [](const OpInstance&, const std::string&) { return true; };
constexpr auto no_function = [](std::string_view) -> const Function* { return nullptr; };

DeviceName cpu(const std::string& task) {
  return parse_device_name("/job:w/replica:0/task:" + task + "/device:CPU:0");
}

class InCluster : public ::testing::Test {
 protected:
  InCluster() : devices(placement_devices(std::vector<DeviceName>{cpu("0"), cpu("1"), cpu("2")})) {
    // Computing is dear and sending cheap.
    model.devices.push_back({parse_device_name("/device:CPU:*"), {1e6, 1e6, 1e-6}});
    model.links.push_back({{}, {}, 1e-9, 1e15});
  }
  CostPlacement placed() {
    return place_in_cluster(*b.graph, devices, false, everywhere, no_function, model);
  }
  static int32_t of(const CostPlacement& found, Output value) {
    return found.places[static_cast<size_t>(value.node->id())];
  }

  test::GraphBuilder b;
  std::vector<PlacementDevice> devices;
  CostModel model;
};

TEST_F(InCluster, StateStaysWhereItIsWithoutAModelAndTheRestMoves) {
  const Output x = b.placeholder(DType::kFloat32, {1000, 1000}, "x");
  const Output shape = b.constant(Tensor::vector<int32_t>({1000, 1000}));
  std::vector<Output> states, free;
  for (int i = 0; i < 6; ++i) {
    const Output handle = b.variable(DType::kFloat32, {1000, 1000}, "v" + std::to_string(i));
    if (i == 5) b.graph->set_device(*handle.node, "/job:w/task:2");
    const Output read = b.read(handle, DType::kFloat32);
    states.push_back(handle);
    states.push_back(read);
    free.push_back(b.op("Exp", {read}));
    states.push_back(b.op("RandomUniform", {shape}, {{"dtype", DType::kFloat32}}));
    free.push_back(b.op("Sin", {x}));
  }
  const CostPlacement found = placed();
  for (const Output& state : states)
    EXPECT_EQ(of(found, state),
              state.node == states[15].node || state.node == states[16].node ? 2 : 0);
  std::vector<int> used(3);
  for (const Output& value : free) ++used[static_cast<size_t>(of(found, value))];
  EXPECT_GT(used[1], 0);
  EXPECT_GT(used[2], 0);
}

TEST_F(InCluster, AProfileMovesNoState) {
  const Output handle = b.variable(DType::kFloat32, {100, 100}, "v");
  const Output read = b.read(handle, DType::kFloat32);
  const Output y = b.op("MatMul", {read, read}, {}, "y");
  const CostPlacement before = placed();
  PlacementProfile profile;
  profile.set_device(to_text(cpu("1")), {1'000'000'000'000, 1'000'000'000'000, 0});
  profile.add("CPU", "y", {}, 5'000'000'000);
  model.devices.clear();
  model.costs.profile = std::make_shared<const PlacementProfile>(profile);
  const CostPlacement after = placed();
  EXPECT_EQ(of(before, handle), of(after, handle));
  EXPECT_EQ(of(before, read), of(after, read));
  EXPECT_EQ(of(after, handle), 0);
  static_cast<void>(y);
}

TEST_F(InCluster, ListsStayWithTheirReaders) {
  const Output x = b.placeholder(DType::kFloat32, {1000, 1000}, "x");
  const Output shape = b.constant(Tensor::vector<int32_t>({1000, 1000}));
  std::vector<std::pair<Output, Output>> lists;
  for (int i = 0; i < 6; ++i) {
    const Output stacked =
        b.op("Pack", {b.op("Exp", {x}), b.op("Sin", {x})}, {{"axis", int64_t{0}}});
    const Output list =
        b.op("TensorListFromTensor", {stacked, shape}, {{"element_dtype", DType::kFloat32}});
    lists.emplace_back(
        list, b.op("TensorListStack", {list, shape}, {{"element_dtype", DType::kFloat32}}));
  }
  const CostPlacement found = placed();
  bool moved = false;
  for (const auto& [list, reader] : lists) {
    EXPECT_EQ(of(found, list), of(found, reader));
    moved = moved || of(found, list) != 0;
  }
  EXPECT_TRUE(moved);
}

TEST_F(InCluster, TheMemoryThatTasksTellHolds) {
  const Output handle = b.variable(DType::kFloat32, {1000, 1000}, "v");
  b.read(handle, DType::kFloat32);
  auto told = std::make_shared<ClusterFigures>();
  told->add("/job:w/replica:0/task:0", {.cores = 1, .memory_bytes = 1'000'000});
  model.told = told;
  const std::string said = testing::error_of([&] { placed(); });
  EXPECT_NE(said.find("no placement fits the memory of the devices"), std::string::npos) << said;
  EXPECT_NE(said.find("/job:w/replica:0/task:0/device:CPU:0: 4000000 bytes at once, of which it "
                      "has 1000000"),
            std::string::npos)
      << said;
}

TEST(ClusterFigures, ShareCoresOfAHostAndTellLinksApart) {
  ClusterFigures told;
  told.add("/job:w/replica:0/task:0", {4, 4, 100, 1, "host", "host/tmp"});
  told.add("/job:w/replica:0/task:1", {4, 4, 200, 2, "host", "host/tmp"});
  told.add("/job:w/replica:0/task:2", {2, 8, 0, 1, "other", ""});
  told.add("/job:w/replica:0/task:3", {2, 8, 0, 1, "other", ""});
  for (const ClusterFigures& each : {told, ClusterFigures::from_bytes(told.to_bytes())}) {
    EXPECT_EQ(each.cores(cpu("0")), 2);
    EXPECT_EQ(each.cores(cpu("1")), 1);  // two CPU devices share
    EXPECT_EQ(each.cores(cpu("2")), 2);  // there are enough
    EXPECT_EQ(each.cores(cpu("9")), 1);
    EXPECT_EQ(each.memory_bytes(cpu("1")), 200);
    EXPECT_EQ(each.link(cpu("0"), cpu("1")), TaskLink::kLentMemory);
    EXPECT_EQ(each.link(cpu("2"), cpu("3")), TaskLink::kLoopback);
    EXPECT_EQ(each.link(cpu("0"), cpu("2")), TaskLink::kNetwork);
    EXPECT_EQ(each.link(cpu("0"), cpu("9")), TaskLink::kNetwork);
  }
  EXPECT_EQ(told.to_bytes().find("host"), std::string::npos);  // clients get numbers
}

TEST(CostModel, TakesWhatWasAskedThenMeasuredThenTold) {
  CostModel model;
  auto told = std::make_shared<ClusterFigures>();
  told->add("/job:w/replica:0/task:0", {4, 4, 100, 1, "host", ""});
  model.told = told;
  const double core = usual_speed("CPU").flops_per_second;
  EXPECT_EQ(model_of(model, cpu("0")).speed.flops_per_second, 4 * core);
  EXPECT_EQ(model_of(model, cpu("0")).memory_bytes, 100);
  EXPECT_EQ(model_of(model, cpu("1")).speed.flops_per_second, core);
  PlacementProfile profile;
  profile.set_device(to_text(cpu("0")), {7, 8, 9});
  profile.set_link({"/job:w/replica:0/task:0", "/job:w/replica:0/task:1"}, {2000, 5});
  model.costs.profile = std::make_shared<const PlacementProfile>(profile);
  EXPECT_EQ(model_of(model, cpu("0")).speed.flops_per_second, 7);
  EXPECT_EQ(model_of(model, cpu("0")).memory_bytes, 100);
  EXPECT_EQ(model_of(model, cpu("0"), cpu("1")).latency, 2000 * 1e-9);
  EXPECT_EQ(model_of(model, cpu("0"), cpu("1")).bytes_per_second, 5);
  EXPECT_EQ(model_of(model, cpu("1"), cpu("0")).bytes_per_second, 1.25e9);
  model.devices.push_back({parse_device_name("/job:w"), {1, 2, 3}, 4, 50});
  EXPECT_EQ(model_of(model, cpu("0")).speed.flops_per_second, 1);
  EXPECT_EQ(model_of(model, cpu("0")).memory_bytes, 50);
}

// Two devices of a host, of which the second is slowed, and one that is alone.
std::shared_ptr<const PlacementProfile> contended_profile() {
  PlacementProfile profile;
  for (const char* task : {"0", "1", "2"}) profile.set_device(to_text(cpu(task)), {7, 8, 9});
  profile.set_contention(to_text(cpu("0")), {"box", 1000});
  profile.set_contention(to_text(cpu("1")), {"box", 1388});
  return std::make_shared<const PlacementProfile>(profile);
}

TEST(CostModel, HasWhatWasMeasuredOfDevicesThatSlowEachOther) {
  CostModel model;
  EXPECT_EQ(model_of(model, cpu("0")).slowdown, 1);
  model.costs.profile = contended_profile();
  EXPECT_EQ(model_of(model, cpu("0")).slowdown, 1);
  EXPECT_EQ(model_of(model, cpu("0")).host, "box");
  EXPECT_EQ(model_of(model, cpu("1")).slowdown, 1.388);
  EXPECT_EQ(model_of(model, cpu("1")).host, "box");
  EXPECT_EQ(model_of(model, cpu("2")).slowdown, 1);
  EXPECT_EQ(model_of(model, cpu("2")).host, "");
}

TEST(CostModel, TakesHostsFromTheTasksWhereTheyTellThem) {
  CostModel model;
  model.costs.profile = contended_profile();
  auto told = std::make_shared<ClusterFigures>();
  for (const char* task : {"0", "1", "2"}) {
    told->add(std::string("/job:w/replica:0/task:") + task,
              {4, 4, 0, 1, std::string("host") + task, ""});
  }
  model.told = told;
  EXPECT_EQ(model_of(model, cpu("0")).host, "host0");  // they are apart by now
  EXPECT_EQ(model_of(model, cpu("1")).host, "host1");
  EXPECT_EQ(model_of(model, cpu("2")).host, "");  // nothing was measured of it
  model.devices.push_back({cpu("2"), {1, 2, 3}, 1, 0});
  EXPECT_EQ(model_of(model, cpu("2")).host, "");
  model.devices[0].slowdown = 1.5;
  EXPECT_EQ(model_of(model, cpu("2")).host, "host2");
  model.devices[0].host = "mine";
  EXPECT_EQ(model_of(model, cpu("2")).host, "mine");
}

TEST_F(InCluster, ADeviceThatOthersSlowTooMuchIsLeftAlone) {
  const Output x = b.placeholder(DType::kFloat32, {1000, 1000}, "x");
  std::vector<Output> ends;
  for (int i = 0; i < 6; ++i) ends.push_back(b.op("Exp", {x}));
  const auto used = [&](double slowdown) {
    for (DeviceModel& each : model.devices) {
      each.slowdown = slowdown;
      each.host = "box";
    }
    const CostPlacement found = placed();
    std::vector<int> counts(3);
    for (const Output& end : ends) ++counts[static_cast<size_t>(of(found, end))];
    return counts;
  };
  EXPECT_EQ(used(1), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(used(1.4), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(used(4), (std::vector<int>{6, 0, 0}));
}

CostModel some_model() {
  CostModel model;
  model.devices.push_back({parse_device_name("/job:w/device:CPU:*"), {1e9, 2e9, 3e-6}, 4, 5});
  model.links.push_back(
      {parse_device_name("/job:w"), {}, 1e-5, 1e8, PlacementProblem::Sharing::kBoth});
  PlacementProfile profile;
  profile.add("CPU", "a", {}, 7);
  model.costs.profile = std::make_shared<const PlacementProfile>(profile);
  model.devices.back().slowdown = 1.25;
  model.devices.back().host = "box";
  model.costs.unknown_dimension = 3;
  model.costs.trip_count = 2.5;
  return model;
}

TEST(CostModelBytes, GoThereAndBack) {
  const std::string bytes = cost_model_to_bytes(some_model());
  const CostModel found = cost_model_from_bytes(bytes);
  EXPECT_EQ(cost_model_to_bytes(found), bytes);
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.devices[0].slots, 4);
  EXPECT_EQ(found.devices[0].memory_bytes, 5);
  EXPECT_EQ(found.devices[0].slowdown, 1.25);
  EXPECT_EQ(found.devices[0].host, "box");
  EXPECT_EQ(found.links.at(0).sharing, PlacementProblem::Sharing::kBoth);
  EXPECT_EQ(found.costs.unknown_dimension, 3);
  EXPECT_EQ(found.costs.trip_count, 2.5);
  EXPECT_FALSE(cost_model_to_bytes({}).empty());
}

TEST(CostModelBytes, WithoutASlowdownAreOfDevicesThatNothingSlows) {
  const std::string device = "/job:w/device:CPU:*";
  std::string bytes = {'\n', static_cast<char>(device.size() + 2), '\n',
                       static_cast<char>(device.size())};
  bytes += device;
  const CostModel found = cost_model_from_bytes(bytes);
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(to_text(found.devices[0].devices), device);
  EXPECT_EQ(found.devices[0].slowdown, 1);
  EXPECT_EQ(found.devices[0].host, "");
}

TEST(CostModelBytes, HaveTheProfilesSlowdowns) {
  CostModel model;
  model.costs.profile = contended_profile();
  const CostModel found = cost_model_from_bytes(cost_model_to_bytes(model));
  EXPECT_EQ(model_of(found, cpu("1")).slowdown, 1.388);
}

TEST(CostModelBytes, RefuseWhatNoDeviceIs) {
  const auto reading = [](const auto& change) {
    CostModel model = some_model();
    change(model);
    return testing::error_of([&] { cost_model_from_bytes(cost_model_to_bytes(model)); });
  };
  EXPECT_EQ(reading([](CostModel& m) {
              m.devices[0].speed.flops_per_second = 0;
            }).find("InvalidArgument: a cost model says 0 for operations per second"),
            0U);
  EXPECT_NE(reading([](CostModel& m) { m.links[0].latency = -1; }), "no error");
  EXPECT_NE(reading([](CostModel& m) { m.links[0].bytes_per_second = 1.0 / 0.0; }), "no error");
  EXPECT_NE(reading([](CostModel& m) { m.devices[0].slots = 0; }), "no error");
  for (const double slowdown : {0.5, -1.0, 0.0 / 0.0, 1.0 / 0.0}) {
    EXPECT_EQ(reading([&](CostModel& m) { m.devices[0].slowdown = slowdown; }),
              concat("InvalidArgument: a cost model says ", slowdown,
                     " for a slowdown; needed is a number in [1, 1e+06]"));
  }
  EXPECT_NE(reading([](CostModel& m) { m.costs.unknown_dimension = 0; }), "no error");
  EXPECT_NE(reading([](CostModel& m) { m.costs.trip_count = 0.0 / 0.0; }), "no error");
  EXPECT_NE(reading([](CostModel& m) {
              m.links.assign(5000, m.links[0]);
            }).find("has more than 4096 models"),
            std::string::npos);
}

TEST(CostModelBytes, OfAnyBytesAreAModelOrRefused) {
  const std::string sound = cost_model_to_bytes(some_model());
  std::mt19937 random(3);
  int read = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = sound;
    for (unsigned change = 0; change < 1 + random() % 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      cost_model_from_bytes(bytes);
      ++read;
    } catch (const Error&) {
      ++refused;
    }
    try {
      ClusterFigures::from_bytes(bytes);
    } catch (const Error&) {  // that is an answer
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace treenail
