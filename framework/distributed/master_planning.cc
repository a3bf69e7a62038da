// SPDX-License-Identifier: Apache-2.0
// How a master makes a plan: the program's graph is placed over the tasks' devices and cut, and
// each task is given its pieces.
#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/distributed/master_plan.h"
#include "framework/distributed/planning/split_calls.h"
#include "framework/distributed/planning/whole_program.h"
#include "framework/graph/serialize.h"
#include "framework/placement/partition.h"

namespace treenail {
namespace {

protocol::Program program_of(const Piece& piece, const std::string& session,
                             const protocol::Settings& settings, const std::string& owner) {
  protocol::Program program{
      session, graph_to_bytes(*piece.graph, Exchanges::kAllowed), {}, {}, {}, settings, owner, {}};
  for (const auto& [number, value] : piece.feeds) program.feeds.push_back(to_text(value));
  for (const auto& [number, value] : piece.fetches) program.fetches.push_back(to_text(value));
  for (const auto& [number, node] : piece.targets) program.targets.push_back(node->name());
  for (const Node* send : piece.sends) program.targets.push_back(send->name());
  return program;
}

}  // namespace

class Master::Planning {
 public:
  Planning(Master& master, const Session& session, const protocol::Program& program)
      : master_(master),
        session_(session),
        handle_(program.session),
        whole_(program, session.settings.merge_common_subexpressions, master.own_.limits().nodes),
        plan_(std::make_unique<Plan>()) {
    for (const auto& [task, incarnation] : session.incarnations) {
      tasks_.push_back(task);
      names_.push_back(to_text(task));
    }
    for (const PlacementDevice& device : session.devices) {
      const auto at = std::ranges::find(tasks_, task_of(device.name));
      part_of_device_.push_back(static_cast<int32_t>(at - tasks_.begin()));
    }
    plan_->num_feeds = whole_.feeds.size();
    plan_->num_fetches = whole_.fetches.size();
    plan_->num_targets = whole_.targets.size();
  }

  std::unique_ptr<Plan> plan() {
    try {
      std::vector<Piece> pieces = cut();
      for (size_t part = 0; part < pieces.size(); ++part)
        if (!pieces[part].empty()) add(pieces[part], static_cast<int32_t>(part));
    } catch (...) {
      master_.forget(handle_, *plan_);
      throw;
    }
    return std::move(plan_);
  }

 private:
  std::vector<Piece> cut() {
    const FunctionFacts facts(whole_.given->functions(), false);
    std::vector<int32_t> places = placed(session_, whole_.graph, whole_.fetches);
    std::vector<int32_t> parts;
    for (const int32_t place : places) parts.push_back(part_of_device_[static_cast<size_t>(place)]);
    PlacedGraph graph{whole_.graph,   facts, std::move(places), std::move(parts), whole_.fetches,
                      whole_.targets, {}};
    const auto give_called = [this](int32_t part, const Piece& piece) {
      const uint64_t number = give(piece, part);
      const TaskName& task = tasks_[static_cast<size_t>(part)];
      plan_->called.push_back({.task = task, .number = number});
      return PieceAt{to_text(task), number, session_.incarnations.at(task)};
    };
    CallSplitter(whole_.graph, facts,
                 {session_.devices, part_of_device_, names_, session_.settings.allow_soft_placement,
                  master_.own_.limits().nodes},
                 give_called)
        .split(graph);
    return partition({whole_.graph, whole_.feeds, graph.fetches, graph.targets}, graph.parts,
                     names_, static_cast<DType>(session_.settings.sent_as));
  }

  void add(const Piece& piece, int32_t part) {
    PlanPiece made{.task = tasks_[static_cast<size_t>(part)]};
    for (const auto& [number, value] : piece.feeds) made.feeds.push_back(number);
    for (const auto& [number, value] : piece.fetches) made.fetches.push_back(number);
    for (const auto& [number, node] : piece.targets) made.targets.push_back(number);
    for (const Node* send : piece.sends) made.sends.push_back(send->op().get_string("key"));
    made.number = give(piece, part);
    plan_->pieces.push_back(std::move(made));
  }

  uint64_t give(const Piece& piece, int32_t part) {
    return master_.give_piece(session_, tasks_[static_cast<size_t>(part)],
                              program_of(piece, handle_, session_.settings, session_.owner));
  }

  Master& master_;
  const Session& session_;
  const std::string& handle_;
  WholeProgram whole_;
  std::vector<TaskName> tasks_;
  std::vector<std::string> names_;       // of tasks_
  std::vector<int32_t> part_of_device_;  // the number of its task
  std::unique_ptr<Plan> plan_;
};

std::unique_ptr<Master::Plan> Master::planned(const Session& session,
                                              const protocol::Program& program) {
  return Planning(*this, session, program).plan();
}

}  // namespace treenail
