// SPDX-License-Identifier: Apache-2.0
// Which tasks a cluster has, and where each listens.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/device/device_name.h"

namespace treenail {

struct TaskName {
  std::string job;
  int index = 0;
  friend auto operator<=>(const TaskName&, const TaskName&) = default;
};
// "/job:worker/replica:0/task:1", as names of its devices begin.
std::string to_text(const TaskName& task);
// The task of a device's full name.
TaskName task_of(const DeviceName& device);

class ClusterSpec {
 public:
  // Errors: InvalidArgument (a name that is none, no "host:port", a task given twice).
  void add(const TaskName& task, std::string address);
  // "ps=host:2222;worker=host1:2222,host2:2222", tasks of a job in their order. Errors: the same.
  static ClusterSpec parse(std::string_view text);

  // By job, then by number.
  const std::map<TaskName, std::string>& tasks() const { return tasks_; }
  // Errors: NotFound, naming the tasks there are.
  const std::string& address(const TaskName& task) const;

 private:
  std::map<TaskName, std::string> tasks_;
};

}  // namespace treenail
