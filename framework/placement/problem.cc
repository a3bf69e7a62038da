// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/problem.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {
namespace {

void check_number(int64_t number, size_t count, std::string_view what) {
  if (number < 0 || number >= static_cast<int64_t>(count))
    throw invalid_argument("placement: there is no ", what, " ", number, ", there are ", count);
}

void check_amount(double amount, std::string_view what) {
  if (!(amount >= 0) || !std::isfinite(amount))
    throw invalid_argument("placement: ", what, " must be finite and not negative, got ", amount);
}

void check_edges(const PlacementProblem& p) {
  for (size_t v = 0; v < p.values.size(); ++v) {
    const PlacementProblem::Value& value = p.values[v];
    check_number(value.producer, p.tasks.size(), "task");
    check_amount(static_cast<double>(value.bytes), "the bytes of a value");
    check_amount(static_cast<double>(value.held), "the bytes that a value holds");
    if (value.view_of >= 0) check_number(value.view_of, p.values.size(), "value");
    int32_t last = value.producer;
    for (const int32_t consumer : value.consumers) {
      check_number(consumer, p.tasks.size(), "task");
      if (consumer <= last) {
        throw invalid_argument("placement: task ", consumer, " takes a value of task ",
                               value.producer, " and does not come behind it, once and in order");
      }
      last = consumer;
    }
  }
  for (const PlacementProblem::Task& task : p.tasks) {
    check_number(task.unit, p.units.size(), "unit");
    for (const int32_t value : task.inputs) check_number(value, p.values.size(), "value");
    for (const int32_t value : task.outputs) check_number(value, p.values.size(), "value");
  }
}

void check_devices(const PlacementProblem& p) {
  if (p.devices.empty()) throw invalid_argument("placement: there is no device");
  for (const PlacementProblem::Device& device : p.devices) {
    check_number(device.memory, p.capacities.size(), "memory");
    check_number(device.cost_class, static_cast<size_t>(std::max(p.cost_classes, 0)), "cost class");
    if (device.slots < 1)
      throw invalid_argument("placement: a device must have at least 1 slot, got ", device.slots);
    if (!(device.slowdown >= 1) || !std::isfinite(device.slowdown)) {
      throw invalid_argument("placement: the slowdown of a device must be finite and at least 1, ",
                             "got ", device.slowdown);
    }
  }
  for (const PlacementProblem::Unit& unit : p.units) {
    check_amount(static_cast<double>(unit.state_bytes), "the bytes of state");
    int32_t last = -1;
    for (const int32_t device : unit.devices) {
      check_number(device, p.devices.size(), "device");
      if (device <= last) throw invalid_argument("placement: a unit's devices must rise");
      last = device;
    }
  }
  for (const int64_t capacity : p.capacities)
    check_amount(static_cast<double>(capacity), "the capacity of a memory");
}

void check_links(const PlacementProblem& p) {
  const size_t pairs = p.capacities.size() * p.capacities.size();
  if (p.link_of.size() != pairs) {
    throw invalid_argument("placement: ", p.capacities.size(), " memories need ", pairs,
                           " numbers of links, got ", p.link_of.size());
  }
  for (const int32_t link : p.link_of) check_number(link, p.links.size(), "link");
  for (const PlacementProblem::Link& link : p.links) {
    check_amount(link.latency, "the latency of a link");
    check_amount(link.seconds_per_byte, "the time per byte of a link");
  }
}

}  // namespace

void check_problem(const PlacementProblem& p) {
  check_devices(p);
  check_edges(p);
  check_links(p);
  const size_t costs = p.tasks.size() * static_cast<size_t>(p.cost_classes);
  if (p.seconds.size() != costs) {
    throw invalid_argument("placement: ", p.tasks.size(), " tasks and ", p.cost_classes,
                           " classes of devices need ", costs, " costs, got ", p.seconds.size());
  }
  for (const double seconds : p.seconds) check_amount(seconds, "a cost");
}

}  // namespace treenail
