// SPDX-License-Identifier: Apache-2.0
// Sessions and plans of a master. How a plan's step runs: master_run.cc.
#include "framework/distributed/master.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/random_token.h"
#include "framework/distributed/master_plan.h"
#include "framework/distributed/own_servers.h"
#include "framework/graph/function.h"
#include "framework/graph/passes/cse.h"
#include "framework/graph/serialize.h"
#include "framework/placement/cost_model_bytes.h"
#include "framework/placement/partition.h"
#include "framework/runtime/plan/graph_copier.h"

namespace treenail {
namespace {

// A program's graph as its pieces are cut from it: calls have given way to what they call.
struct WholeProgram {
  std::unique_ptr<Graph> given;
  Graph graph{Graph::Names::kAny};
  std::vector<Output> feeds, fetches;
  std::vector<Node*> targets;
};

Output stand_in(Graph& graph, const Output& fed) {
  const NamedAttrs attrs = {{"dtype", fed.node->op().output_type(fed.index)},
                            {"shape", fed.node->info(fed.index).shape}};
  Node& node =
      graph.add({.op = "Placeholder", .name = fed.node->name(), .inputs = {}, .attrs = attrs});
  graph.set_origin(node, *fed.node);
  return {&node, 0};
}

void copy_whole(WholeProgram& whole, const protocol::Program& program) {
  const protocol::ProgramValues given = protocol::values_of(program, *whole.given);
  const std::vector<Output>& feeds = given.feeds;
  whole.feeds.resize(feeds.size());
  const FunctionFacts facts(whole.given->functions(), false);
  GraphCopier::Calls calls{&facts};
  const auto feed = [&](size_t i) {
    if (whole.feeds[i].node == nullptr) whole.feeds[i] = stand_in(whole.graph, feeds[i]);
    return whole.feeds[i];
  };
  GraphCopier copier(*whole.given, feeds, whole.graph, calls, feed);
  for (const Output& fetch : given.fetches) copier.need(fetch);
  for (const Node* target : given.targets) copier.need(*target);
  copier.copy_needed();
  for (const Output& fetch : given.fetches) whole.fetches.push_back(copier.copy_of(fetch));
  for (const Node* target : given.targets) whole.targets.push_back(copier.copy_of(*target));
  whole.graph.functions() = whole.given->functions();
}

void merge(WholeProgram& whole) {
  std::vector<Node*> keep = whole.targets;
  for (const Output& value : whole.fetches) keep.push_back(value.node);
  for (const Output& value : whole.feeds)
    if (value.node != nullptr) keep.push_back(value.node);
  merge_common_subexpressions(whole.graph, keep);
}

// In a run in parts each fetch and each target is asked for by itself, so no two may be one.
void make_ends_differ(WholeProgram& whole) {
  std::set<std::pair<const Node*, int>> fetched;
  for (Output& fetch : whole.fetches) {
    if (fetched.emplace(fetch.node, fetch.index).second) continue;
    const NamedAttrs attrs = {{"T", fetch.node->op().output_type(fetch.index)}};
    fetch = {&whole.graph.add({.op = "Identity",
                               .name = concat(fetch.node->name(), "/_again"),
                               .inputs = std::span(&fetch, 1),
                               .attrs = attrs,
                               .device = fetch.node->device()}),
             0};
  }
  std::set<const Node*> run;
  for (Node*& target : whole.targets) {
    if (run.insert(target).second) continue;
    Node* const before[] = {target};
    target = &whole.graph.add({.op = "NoOp",
                               .name = concat(target->name(), "/_again"),
                               .inputs = {},
                               .attrs = {},
                               .control_inputs = before,
                               .device = target->device()});
  }
}

// By node, the number in `tasks` of the task that its device is of.
std::vector<int32_t> parts_of(const std::vector<int32_t>& places,
                              const std::vector<PlacementDevice>& devices,
                              const std::vector<TaskName>& tasks) {
  std::vector<int32_t> by_device;
  for (const PlacementDevice& device : devices) {
    const auto at = std::ranges::find(tasks, task_of(device.name));
    by_device.push_back(static_cast<int32_t>(at - tasks.begin()));
  }
  std::vector<int32_t> parts;
  for (const int32_t place : places) parts.push_back(by_device[static_cast<size_t>(place)]);
  return parts;
}

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

void check_nodes(const Graph& graph, int64_t most) {
  int64_t nodes = graph.num_nodes();
  for (const auto& [name, function] : graph.functions()) nodes += function->body->num_nodes();
  if (nodes <= most) return;
  throw error_of(Code::kResourceExhausted,
                 {"the run needs ", nodes, " nodes, with those of functions; this server takes ",
                  most, " (--max-nodes)"});
}

// Whether a name of `known` is of its devices, or there is none.
bool covered(const TaskName& task, const std::vector<DeviceName>& known) {
  const auto agrees = [&](const DeviceName& name) {
    return (name.job.empty() || name.job == task.job) && name.replica.value_or(0) == 0 &&
           name.task.value_or(task.index) == task.index;
  };
  return known.empty() || std::ranges::any_of(known, agrees);
}

// Null where the session did not ask for a placement by cost.
std::shared_ptr<const CostModel> asked_model(const std::string& placement, ClusterFigures told) {
  if (placement.empty()) return nullptr;
  auto model = std::make_shared<CostModel>(cost_model_from_bytes(placement));
  model->told = std::make_shared<const ClusterFigures>(std::move(told));
  return model;
}

void check_sent_as(uint64_t dtype) {
  for (const DType known : {DType::kInvalid, DType::kBFloat16, DType::kFloat16})
    if (dtype == static_cast<uint64_t>(known)) return;
  throw invalid_argument("values between tasks are to be rounded to dtype number ", dtype,
                         "; needed is bfloat16 or float16");
}

}  // namespace

Master::~Master() = default;

std::shared_ptr<Master::Session> Master::session(const Caller& caller, const std::string& handle) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(handle);
  if (found != sessions_.end() && found->second->owner == caller.identity) {
    found->second->used = Session::Clock::now();
    return found->second;
  }
  throw error_of(Code::kAborted, {"this server has no such session: it was closed or reset, or the "
                                  "server was restarted"});
}

std::vector<protocol::TaskStatus> Master::statuses(const std::vector<std::string>& filters) {
  std::vector<DeviceName> known;
  for (const std::string& filter : filters) known.push_back(parse_device_name(filter));
  std::vector<protocol::TaskStatus> found{own_.status()};
  for (const auto& [task, address] : own_.cluster().tasks()) {
    if (task == own_.task() || !covered(task, known)) continue;
    poll_interrupt();
    const RpcPeer& peer = own_.peer(task);
    const Message reply = peer.call(protocol::worker::kGetStatus, {}, {},
                                    {.wait_for_ready = true, .repeatable = true});
    found.push_back(protocol::read<protocol::TaskStatus>(reply.fields()));
    if (found.back().name == to_text(task)) continue;
    throw failed_precondition(peer.who(), " says that it is ", found.back().name,
                              ": the servers were given different clusters");
  }
  return found;
}

// Room is made by what nobody has used for long, maybe since its client ended without a word.
void Master::add_session(const std::string& handle, std::shared_ptr<Session> made) {
  const Limits& limits = own_.limits();
  const auto expired = Session::Clock::now() - std::chrono::seconds(limits.idle_seconds);
  std::map<std::string, std::shared_ptr<Session>> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const bool idle = at->second.use_count() == 1 && at->second->used.load() < expired;
      if (idle) gone.insert(*at);
      at = idle ? sessions_.erase(at) : std::next(at);
    }
    const auto open = std::ranges::count_if(
        sessions_, [&](const auto& each) { return each.second->owner == made->owner; });
    if (open >= limits.sessions) {
      throw error_of(
          Code::kResourceExhausted,
          {"there are ", static_cast<int64_t>(open), " open sessions at this server",
           made->owner.empty() ? "" : " of \"", made->owner, made->owner.empty() ? "" : "\"",
           ", and it takes no more (--max-sessions): close those that are not needed"});
    }
    sessions_.emplace(handle, std::move(made));
  }
  for (const auto& [name, session] : gone) close(name, *session);
}

protocol::SessionOpened Master::open_session(const Caller& caller,
                                             const protocol::Settings& settings) {
  check_sent_as(settings.sent_as);
  auto made = std::make_shared<Session>();
  made->settings = settings;
  made->settings.secret.clear();
  made->owner = caller.identity;
  if (are_equal_secrets(settings.secret, secret_)) made->trust = Worker::Trust::kOwnProcess;
  protocol::SessionOpened opened{random_token(), {}, {}};
  std::vector<DeviceName> names;
  ClusterFigures told;
  for (const protocol::TaskStatus& status : statuses(settings.device_filters)) {
    made->incarnations[task_of(parse_device_name(status.name))] = status.incarnation;
    told.add(status.name, figures_from_bytes(status.figures));
    for (const std::string& device : status.devices) {
      opened.devices.push_back(device);
      names.push_back(parse_device_name(device));
    }
  }
  made->devices = placement_devices(names);
  opened.figures = told.to_bytes();
  made->by_cost = asked_model(settings.placement, std::move(told));
  made->settings.placement.clear();  // no worker's business
  add_session(opened.session, std::move(made));
  return opened;
}

std::vector<std::string> Master::devices() {
  std::vector<std::string> names;
  for (const protocol::TaskStatus& status : statuses())
    names.insert(names.end(), status.devices.begin(), status.devices.end());
  return names;
}

uint64_t Master::make_plan(const Caller& caller, const protocol::Program& program) {
  const std::shared_ptr<Session> found = session(caller, program.session);
  const auto check_room = [&] {
    if (static_cast<int64_t>(found->plans.size()) < own_.limits().plans) return;
    throw error_of(Code::kResourceExhausted,
                   {"the session has plans for ", found->plans.size(),
                    " sets of feeds, fetches and targets, and may have no more (--max-plans)"});
  };
  {
    const std::lock_guard lock(found->mutex);
    check_room();
  }
  const std::shared_ptr<Plan> plan = placed_plan(*found, program);
  const std::lock_guard lock(found->mutex);
  check_room();
  found->plans.emplace(++found->last_plan, plan);
  return found->last_plan;
}

std::unique_ptr<Master::Plan> Master::placed_plan(const Session& session,
                                                  const protocol::Program& program) {
  WholeProgram whole;
  whole.given = graph_from_bytes(program.graph);
  check_nodes(*whole.given, own_.limits().nodes);
  copy_whole(whole, program);
  if (session.settings.merge_common_subexpressions) merge(whole);
  if (program.in_parts) make_ends_differ(whole);
  const std::vector<int32_t> places = placed(session, whole.graph, whole.fetches);
  std::vector<TaskName> tasks;
  std::vector<std::string> names;
  for (const auto& [task, incarnation] : session.incarnations) {
    tasks.push_back(task);
    names.push_back(to_text(task));
  }
  const std::vector<Piece> pieces =
      partition({whole.graph, whole.feeds, whole.fetches, whole.targets},
                parts_of(places, session.devices, tasks), names,
                static_cast<DType>(session.settings.sent_as));
  auto plan = std::make_unique<Plan>();
  plan->num_feeds = whole.feeds.size();
  plan->num_fetches = whole.fetches.size();
  plan->num_targets = whole.targets.size();
  for (size_t part = 0; part < pieces.size(); ++part) {
    if (pieces[part].empty()) continue;
    PlanPiece& made = plan->pieces.emplace_back();
    made.task = tasks[part];
    for (const auto& [number, value] : pieces[part].feeds) made.feeds.push_back(number);
    for (const auto& [number, value] : pieces[part].fetches) made.fetches.push_back(number);
    for (const auto& [number, node] : pieces[part].targets) made.targets.push_back(number);
    for (const Node* send : pieces[part].sends) made.sends.push_back(send->op().get_string("key"));
    made.number =
        give_piece(session, made.task,
                   program_of(pieces[part], program.session, session.settings, session.owner));
  }
  return plan;
}

uint64_t Master::give_piece(const Session& session, const TaskName& task,
                            const protocol::Program& piece) {
  if (task == own_.task()) return own_.register_piece(piece, session.trust);
  protocol::Program shown = piece;
  if (session.trust == Worker::Trust::kOwnProcess)  // maybe of that task as well
    shown.secret = own_server(own_.cluster().address(task)).secret;
  const Message reply = own_.peer(task).call(protocol::worker::kRegisterPiece,
                                             protocol::write(shown), {}, {.repeatable = true});
  return protocol::read<protocol::Handle>(reply.fields()).number;
}

void Master::forget_plan(const Caller& caller, const protocol::Handle& handle) {
  const std::shared_ptr<Session> found = session(caller, handle.session);
  std::shared_ptr<Plan> plan;
  {
    const std::lock_guard lock(found->mutex);
    const auto at = found->plans.find(handle.number);
    if (at == found->plans.end()) return;
    plan = std::move(at->second);
    found->plans.erase(at);
  }
  for (const PlanPiece& piece : plan->pieces) {
    const protocol::Handle gone{handle.session, piece.number};
    if (piece.task == own_.task()) {
      own_.forget_piece(gone);
    } else {
      own_.peer(piece.task).tell(protocol::worker::kForgetPiece, protocol::write(gone));
    }
  }
}

void Master::close_session(const Caller& caller, const std::string& handle) {
  std::shared_ptr<Session> found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = sessions_.find(handle);
    if (at == sessions_.end() || at->second->owner != caller.identity) return;
    found = std::move(at->second);
    sessions_.erase(at);
  }
  close(handle, *found);
}

void Master::close(const std::string& handle, const Session& session) {
  own_.close_session(handle);
  for (const auto& [task, incarnation] : session.incarnations) {
    if (task != own_.task())
      own_.peer(task).tell(protocol::worker::kCloseSession,
                           protocol::write(protocol::Handle{handle, 0}));
  }
}

void Master::reset(const Caller& caller, const protocol::ResetRequest& request) {
  std::vector<std::string> handles;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, session] : sessions_)
      if (session->owner == caller.identity) handles.push_back(handle);
  }
  for (const std::string& handle : handles) close_session(caller, handle);
  const protocol::ResetRequest own{request.containers, caller.identity};
  own_.reset(own);
  for (const auto& [task, address] : own_.cluster().tasks()) {
    if (task != own_.task())
      own_.peer(task).call(protocol::worker::kReset, protocol::write(own), {},
                           {.repeatable = true});
  }
}

}  // namespace treenail
