// SPDX-License-Identifier: Apache-2.0
// Sessions of a master. How a plan is made: master_planning.cc; how its step runs: master_run.cc.
#include "framework/distributed/master.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/random_token.h"
#include "framework/distributed/master_plan.h"
#include "framework/distributed/own_servers.h"
#include "framework/placement/cost_model_bytes.h"

namespace treenail {
namespace {

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
  const std::shared_ptr<Plan> plan = planned(*found, program);
  try {
    const std::lock_guard lock(found->mutex);
    check_room();
    found->plans.emplace(++found->last_plan, plan);
    return found->last_plan;
  } catch (...) {
    forget(program.session, *plan);
    throw;
  }
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
  forget(handle.session, *plan);
}

void Master::forget(const std::string& session, const Plan& plan) {
  const auto forget_piece = [&](const PlanPiece& piece) {
    const protocol::Handle gone{session, piece.number};
    if (piece.task == own_.task()) return own_.forget_piece(gone);
    own_.peer(piece.task).tell(protocol::worker::kForgetPiece, protocol::write(gone));
  };
  std::ranges::for_each(plan.pieces, forget_piece);
  std::ranges::for_each(plan.called, forget_piece);
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
