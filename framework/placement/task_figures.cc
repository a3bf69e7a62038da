// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/task_figures.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/proto_wire.h"

namespace treenail {
namespace {

// Beyond these nothing is believed; sums stay in range.
constexpr int64_t kMostCores = int64_t{1} << 20;
constexpr int64_t kMostMemory = int64_t{1} << 60;

int64_t bounded(uint64_t told, int64_t most) {
  return told > static_cast<uint64_t>(most) ? most : static_cast<int64_t>(told);
}

}  // namespace

std::string task_text(const DeviceName& device) {
  return concat("/job:", device.job, "/replica:", device.replica.value_or(0),
                "/task:", device.task.value_or(0));
}

void ClusterFigures::add(const std::string& task, TaskFigures figures) {
  wanted_cores_[figures.host] += figures.cores;
  tasks_.insert_or_assign(task, std::move(figures));
}

const TaskFigures* ClusterFigures::find(const DeviceName& device) const {
  const auto found = tasks_.find(task_text(device));
  return found == tasks_.end() ? nullptr : &found->second;
}

double ClusterFigures::cores(const DeviceName& device) const {
  const TaskFigures* const task = find(device);
  if (task == nullptr || task->cores < 1) return 1;
  const double wanted = static_cast<double>(wanted_cores_.at(task->host));
  const double there = static_cast<double>(std::max<int64_t>(task->host_cores, 1));
  const double share = task->host.empty() ? 1 : std::min(1.0, there / wanted);
  return share * static_cast<double>(task->cores) /
         static_cast<double>(std::max<int64_t>(task->cpus, 1));
}

int64_t ClusterFigures::memory_bytes(const DeviceName& device) const {
  const TaskFigures* const task = find(device);
  return task == nullptr ? 0 : task->memory_bytes;
}

std::string ClusterFigures::host(const DeviceName& device) const {
  const TaskFigures* const task = find(device);
  return task == nullptr ? "" : task->host;
}

TaskLink ClusterFigures::link(const DeviceName& from, const DeviceName& to) const {
  const TaskFigures *const source = find(from), *const destination = find(to);
  const bool together = source != nullptr && destination != nullptr && !source->host.empty() &&
                        source->host == destination->host;
  if (!together) return TaskLink::kNetwork;
  const bool lent = !source->lends.empty() && source->lends == destination->lends;
  return lent ? TaskLink::kLentMemory : TaskLink::kLoopback;
}

std::string ClusterFigures::to_bytes() const {
  std::map<std::string, std::string> hosts, lenders;
  const auto numbered = [](std::map<std::string, std::string>& known, const std::string& name) {
    if (name.empty()) return name;
    return known.try_emplace(name, concat(known.size() + 1)).first->second;
  };
  ProtoWriter all;
  for (const auto& [task, told] : tasks_) {
    TaskFigures shown = told;
    shown.host = numbered(hosts, told.host);
    shown.lends = numbered(lenders, told.lends);
    ProtoWriter each;
    each.bytes(1, task);
    each.bytes(2, figures_to_bytes(shown));
    all.message(1, each);
  }
  return all.text();
}

ClusterFigures ClusterFigures::from_bytes(std::string_view bytes) {
  ClusterFigures all;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(&field);) {
    if (field.number != 1) continue;
    std::string task;
    TaskFigures figures;
    ProtoReader each(field.bytes);
    for (ProtoField part; each.next(&part);) {
      if (part.number == 1) task = part.bytes;
      if (part.number == 2) figures = figures_from_bytes(part.bytes);
    }
    all.add(task, std::move(figures));
  }
  return all;
}

std::string figures_to_bytes(const TaskFigures& figures) {
  ProtoWriter out;
  out.signed_number(1, figures.cores);
  out.signed_number(2, figures.host_cores);
  out.signed_number(3, figures.memory_bytes);
  out.signed_number(4, figures.cpus);
  out.bytes(5, figures.host);
  out.bytes(6, figures.lends);
  return out.text();
}

TaskFigures figures_from_bytes(std::string_view bytes) {
  TaskFigures figures;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) figures.cores = bounded(field.value, kMostCores);
    if (field.number == 2) figures.host_cores = bounded(field.value, kMostCores);
    if (field.number == 3) figures.memory_bytes = bounded(field.value, kMostMemory);
    if (field.number == 4) figures.cpus = bounded(field.value, kMostCores);
    if (field.number == 5) figures.host = field.bytes;
    if (field.number == 6) figures.lends = field.bytes;
  }
  return figures;
}

}  // namespace treenail
