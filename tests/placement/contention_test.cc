// SPDX-License-Identifier: Apache-2.0
// Devices of one host that slow each other: schedules that were worked out by hand.
#include "framework/placement/contention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/placement/search.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using Problem = PlacementProblem;
using Times = std::vector<double>;
using testing::error_of;

// Devices of one host, each with a memory of its own; links take no time.
Problem devices_of_a_host(const std::vector<double>& slowdowns) {
  Problem p;
  for (const double slowdown : slowdowns) {
    p.devices.push_back({static_cast<int32_t>(p.capacities.size()), 1, 0, 0, slowdown});
    p.capacities.push_back(0);
  }
  p.links.push_back({});
  p.link_of.assign(slowdowns.size() * slowdowns.size(), 0);
  return p;
}

// A task of a unit of its own that hands on a value to those that take it.
int32_t add_task(Problem& p, double seconds, const std::vector<int32_t>& after = {}) {
  const auto task = static_cast<int32_t>(p.tasks.size());
  p.tasks.push_back({task, after, {task}});  // a task's value has its number
  p.units.emplace_back();
  p.seconds.push_back(seconds);
  p.values.push_back({task, 0, 0, -1, {}});
  for (const int32_t value : after) p.values[static_cast<size_t>(value)].consumers.push_back(task);
  return task;
}

PlacementTimeline simulated(const Problem& p, const std::vector<int32_t>& places) {
  check_problem(p);
  return simulate(p, places);
}

TEST(Contention, SlowsEachDeviceByItsOwnMeasureAndNoLongerThanOthersWork) {
  Problem p = devices_of_a_host({1, 2});
  add_task(p, 4);
  add_task(p, 3);
  const PlacementTimeline found = simulated(p, {0, 1});
  EXPECT_EQ(found.finish, (Times{4, 5}));  // 2 of 3 seconds until 4, then 1 alone
  EXPECT_EQ(found.busy, (Times{4, 5}));
  EXPECT_EQ(found.makespan, 5);
}

TEST(Contention, LastsWhileBothWork) {
  Problem p = devices_of_a_host({1.5, 1.5});
  add_task(p, 2);
  add_task(p, 3);
  EXPECT_EQ(simulated(p, {0, 1}).finish, (Times{3, 4}));
  EXPECT_EQ(simulated(p, {1, 0}).finish, (Times{3, 4}));
  EXPECT_EQ(simulated(p, {0, 0}).finish, (Times{2, 5}));  // nobody else
}

TEST(Contention, BeginsInTheMiddleOfATask) {
  Problem p = devices_of_a_host({2, 2});
  p.links[0].latency = 0.5;
  add_task(p, 1);
  add_task(p, 2, {0});
  add_task(p, 2, {0});
  const PlacementTimeline found = simulated(p, {0, 0, 1});
  EXPECT_EQ(found.start, (Times{0, 1, 1.5}));
  // Half a second of the second task alone, then 1.5 in 3; the third has half a second left then.
  EXPECT_EQ(found.finish, (Times{1, 4.5, 5}));
}

TEST(Contention, IsAPartOfItWhereSomeOfTheOthersWork) {
  Problem p = devices_of_a_host({3, 3, 3});
  for (const double seconds : {1, 2, 3}) add_task(p, seconds);
  // A third as fast until 3, half as fast until 5, then alone.
  EXPECT_EQ(simulated(p, {0, 1, 2}).finish, (Times{3, 5, 6}));
}

TEST(Contention, IsNotBetweenTasksOfOneDevice) {
  Problem p = devices_of_a_host({2, 2});
  p.devices[0].slots = 2;
  for (const double seconds : {1, 2, 2}) add_task(p, seconds);
  EXPECT_EQ(simulated(p, {0, 0, 1}).finish, (Times{2, 4, 4}));
}

TEST(Contention, IsNotByWhatTakesNoTimeNorByTransfers) {
  Problem p = devices_of_a_host({2, 2});
  p.links[0].latency = 1;
  add_task(p, 0);
  add_task(p, 0, {0});
  add_task(p, 3);
  const PlacementTimeline found = simulated(p, {0, 1, 0});
  EXPECT_EQ(found.start, (Times{0, 1, 0}));
  EXPECT_EQ(found.finish, (Times{0, 1, 3}));
}

TEST(Contention, IsNotOnOtherHostsNorWhereNothingIsSlowed) {
  Problem p = devices_of_a_host({2, 2});
  for (const double seconds : {0.1, 0.2, 0.3, 0.7}) add_task(p, seconds);
  const std::vector<int32_t> places = {0, 1, 0, 1};
  Problem plain = p;
  for (Problem::Device& device : plain.devices) device.host = -1;
  const PlacementTimeline expected = simulated(plain, places);
  EXPECT_NE(simulated(p, places).finish, expected.finish);
  p.devices[1].host = 1;
  EXPECT_EQ(simulated(p, places).finish, expected.finish);
  p.devices[1].host = 0;
  for (Problem::Device& device : p.devices) device.slowdown = 1;
  EXPECT_EQ(simulated(p, places).finish, expected.finish);
}

TEST(Contention, DecidesWhetherTwoDevicesPay) {
  const auto chosen = [](double slowdown) {
    Problem p = devices_of_a_host({slowdown, slowdown});
    for (int i = 0; i < 6; ++i) add_task(p, 1);
    return search_placement(p);
  };
  EXPECT_EQ(chosen(1).timeline.makespan, 3);
  EXPECT_EQ(chosen(1.5).timeline.makespan, 4.5);
  EXPECT_EQ(chosen(1.5).timeline.busy, (Times{4.5, 4.5}));
  const PlacementChoice alone = chosen(2.5);
  EXPECT_EQ(alone.timeline.makespan, 6);
  EXPECT_EQ(alone.places, (std::vector<int32_t>(6, 0)));
  EXPECT_EQ(alone.candidates[alone.chosen].strategy, "single device 0");
}

TEST(Contention, OfLessThanNoneIsNoProblem) {
  for (const double slowdown : {0.9, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Problem p = devices_of_a_host({1, slowdown});
    EXPECT_NE(error_of([&] {
                check_problem(p);
              }).find("placement: the slowdown of a device must be finite and at least 1, got "),
              std::string::npos)
        << slowdown;
  }
}

}  // namespace
}  // namespace treenail
