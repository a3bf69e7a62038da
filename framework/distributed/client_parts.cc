// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/client_parts.h"

#include <atomic>
#include <utility>

#include "framework/base/error.h"
#include "framework/runtime/run/signature.h"

namespace treenail {

struct ClientParts::Open {
  Open(const Graph& graph, std::shared_ptr<Session::Signature> of,
       std::shared_ptr<const ClientPlan> by, uint64_t number)
      : signature(std::move(of)), plan(std::move(by)), number(number), names(graph, *signature) {}

  const std::shared_ptr<Session::Signature> signature;
  const std::shared_ptr<const ClientPlan> plan;
  const uint64_t number;
  std::mutex busy;  // held by who runs a part; guards what follows
  PartNames names;
};

std::string ClientParts::begin(std::shared_ptr<Session::Signature> signature,
                               std::shared_ptr<const ClientPlan> plan, const RunOptions& options) {
  protocol::RunRequest request;
  request.session = remote_->session;
  request.number = plan->number;
  request.timeout_ms = options.timeout_ms;
  const Message reply =
      remote_->peer.call(protocol::master::kPartialRunSetup, protocol::write(request), {},
                         {.timeout_ms = options.timeout_ms, .token = options.token});
  const uint64_t number = protocol::read<protocol::Handle>(reply.fields()).number;
  const auto open = std::make_shared<Open>(graph_, std::move(signature), std::move(plan), number);
  // Of the process: a handle that another session gave is none here.
  static std::atomic<int64_t> next{0};
  std::string handle = concat("remote_partial_run_", ++next);
  const std::lock_guard lock(mutex_);
  open_.emplace(handle, open);
  return handle;
}

protocol::RunRequest ClientParts::request_of(const Open& open, const PartNames::Request& wanted) {
  protocol::RunRequest request;
  request.number = open.number;
  request.in_parts = true;
  request.last = open.names.left() == wanted.size();
  request.feeds.assign(wanted.feeds.begin(), wanted.feeds.end());
  request.fetches.assign(wanted.fetches.begin(), wanted.fetches.end());
  request.targets.assign(wanted.targets.begin(), wanted.targets.end());
  return request;
}

void ClientParts::check_reply(const Open& open, const PartNames::Request& wanted,
                              const protocol::RunReply& did, size_t values) const {
  if (did.lacks_feed == 0) {
    if (values == wanted.fetches.size()) return;
    throw data_loss(remote_->peer.who(), " gave ", values, " values instead of ",
                    wanted.fetches.size());
  }
  const size_t ends = wanted.fetches.size() + wanted.targets.size();
  if (did.lacks_feed <= open.signature->feeds.size() && did.lacking > 0 && did.lacking <= ends)
    return;
  throw data_loss(remote_->peer.who(), " speaks of feeds and fetches that there are not");
}

void ClientParts::refuse(const Open& open, const PartNames::Request& wanted,
                         const protocol::RunReply& did) {
  const size_t which = did.lacking - 1;
  const size_t fetches = wanted.fetches.size();
  if (which < fetches) open.names.refuse_fetch(wanted.fetches[which], did.lacks_feed - 1);
  open.names.refuse_target(wanted.targets[which - fetches], did.lacks_feed - 1);
}

std::vector<Tensor> ClientParts::go_on(const std::string& handle, const Session::Part& part,
                                       const RunOptions& options) {
  std::shared_ptr<Open> open;
  {
    const std::lock_guard lock(mutex_);
    const auto at = open_.find(handle);
    if (at == open_.end()) throw_no_partial_run(handle);
    open = at->second;
  }
  const std::unique_lock busy(open->busy, std::try_to_lock);
  if (!busy) throw failed_precondition("another thread is in a part of this run");
  const PartNames::Request wanted = open->names.request_of(part);
  protocol::RunRequest request = request_of(*open, wanted);
  request.session = remote_->session;
  std::vector<Tensor> feeds;
  for (const auto& [value, tensor] : part.feeds) feeds.push_back(tensor);
  protocol::RunReply did;
  std::vector<Tensor> values;
  try {
    Message reply = remote_->peer.call(protocol::master::kPartialRun, protocol::write(request),
                                       feeds, {.token = options.token});
    did = protocol::read<protocol::RunReply>(reply.fields());
    values = std::move(reply.tensors);
    check_reply(*open, wanted, did, values.size());
  } catch (...) {
    end(handle);
    throw;
  }
  if (did.lacks_feed > 0) refuse(*open, wanted, did);
  for (const size_t feed : wanted.feeds) open->names.note_fed(feed);
  open->names.note_done(wanted);
  if (request.last) take(handle);
  return values;
}

std::shared_ptr<ClientParts::Open> ClientParts::take(const std::string& handle) {
  const std::lock_guard lock(mutex_);
  const auto at = open_.find(handle);
  if (at == open_.end()) return nullptr;
  std::shared_ptr<Open> taken = std::move(at->second);
  open_.erase(at);
  return taken;
}

void ClientParts::end(const std::string& handle) {
  const std::shared_ptr<Open> open = take(handle);
  if (open == nullptr) return;
  remote_->peer.tell(protocol::master::kEndPartialRun,
                     protocol::write(protocol::Handle{remote_->session, open->number}));
}

}  // namespace treenail
