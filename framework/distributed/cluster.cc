// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/cluster.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"

namespace treenail {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What names of devices allow.
bool is_job(std::string_view name) {
  return !name.empty() && is_letter(name[0]) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool is_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && std::ranges::all_of(port, is_digit) &&
         std::stoi(std::string(port)) <= 65535;
}

// The text up to `mark`, which is taken off, or all that is left.
std::string_view take_until(std::string_view& text, char mark) {
  const size_t at = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

}  // namespace

std::string to_text(const TaskName& task) {
  return concat("/job:", task.job, "/replica:0/task:", task.index);
}

TaskName task_of(const DeviceName& device) { return {device.job, device.task.value_or(0)}; }

void ClusterSpec::add(const TaskName& task, std::string address) {
  if (!is_job(task.job)) {
    throw invalid_argument("a job's name is a letter and then letters, digits and _, not \"",
                           task.job, "\"");
  }
  if (task.index < 0) throw invalid_argument("tasks are numbered from 0, not ", task.index);
  if (!is_address(address)) {
    throw invalid_argument("the address of ", to_text(task), " is \"", address,
                           "\"; needed is \"host:port\"");
  }
  if (!tasks_.emplace(task, std::move(address)).second)
    throw invalid_argument(to_text(task), " is given twice");
}

ClusterSpec ClusterSpec::parse(std::string_view text) {
  ClusterSpec cluster;
  while (!text.empty()) {
    std::string_view tasks = take_until(text, ';');
    if (tasks.find('=') == std::string_view::npos) {
      throw invalid_argument("a cluster is written \"ps=host:port;worker=host:port,host:port\"; \"",
                             tasks, "\" has no \"=\"");
    }
    const std::string job(take_until(tasks, '='));
    for (int index = 0; !tasks.empty(); ++index)
      cluster.add({job, index}, std::string(take_until(tasks, ',')));
  }
  return cluster;
}

const std::string& ClusterSpec::address(const TaskName& task) const {
  const auto found = tasks_.find(task);
  if (found != tasks_.end()) return found->second;
  std::string known;
  for (const auto& [each, address] : tasks_)
    known += concat(known.empty() ? "" : ", ", to_text(each));
  throw not_found("the cluster has no ", to_text(task), "; it has ",
                  known.empty() ? "no task at all" : known);
}

}  // namespace treenail
