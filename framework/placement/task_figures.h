// SPDX-License-Identifier: Apache-2.0
// What the tasks of a cluster tell of themselves without measuring anything, and what their devices
// and the links between them are taken to be like because of it. Nothing here changes while tasks
// live, so a placement does not either.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/device/device.h"

namespace treenail {

struct TaskFigures {
  int64_t cores = 0;         // that it may use; 0: not told
  int64_t host_cores = 0;    // of its machine
  int64_t memory_bytes = 0;  // that a run may have; 0: no limit that is known
  int64_t cpus = 1;          // devices that share its cores
  std::string host;          // equal where tasks run under one kernel
  std::string lends;         // equal where tasks of a host lend each other memory; "": it does not
};

// How values pass between two tasks where nobody has measured it.
enum class TaskLink : uint8_t { kLentMemory, kLoopback, kNetwork };

class ClusterFigures {
 public:
  // `task`: "/job:worker/replica:0/task:1".
  void add(const std::string& task, TaskFigures figures);
  bool empty() const { return tasks_.empty(); }

  // Cores that each CPU device of the task has to itself: tasks of one host that may use more than
  // there are share them. 1 where it is not told.
  double cores(const DeviceName& device) const;
  // 0: no limit that is known.
  int64_t memory_bytes(const DeviceName& device) const;
  // Equal where devices are under one kernel; "": it is not told.
  std::string host(const DeviceName& device) const;
  TaskLink link(const DeviceName& from, const DeviceName& to) const;

  // As a protocol-buffer message, for who asks what a run would be like; hosts are numbers there,
  // not names. Errors of reading: InvalidArgument.
  std::string to_bytes() const;
  static ClusterFigures from_bytes(std::string_view bytes);

 private:
  const TaskFigures* find(const DeviceName& device) const;

  std::map<std::string, TaskFigures> tasks_;
  std::map<std::string, int64_t> wanted_cores_;  // by host
};

// One task's, as it tells them. Errors of reading: InvalidArgument.
std::string figures_to_bytes(const TaskFigures& figures);
TaskFigures figures_from_bytes(std::string_view bytes);

// The task that a device is of: "/job:worker/replica:0/task:1".
std::string task_text(const DeviceName& device);

}  // namespace treenail
