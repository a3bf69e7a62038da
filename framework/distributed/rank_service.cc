// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rank_service.h"

#include <chrono>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"

namespace treenail {
namespace {

enum Method : size_t { kHello, kWatch, kNote, kPart };

}  // namespace

RankService::RankService(protocol::RankHello own, std::shared_ptr<RankInbox> inbox,
                         Admission admission)
    : own_(std::move(own)), inbox_(std::move(inbox)), admission_(std::move(admission)) {}

Caller RankService::admit(std::span<const std::string_view> names, std::string_view token) {
  return admission_.admit(names, token);
}

void RankService::check_method(size_t, const Caller& caller) {
  if (caller.is_task) return;
  throw error_of(Code::kPermissionDenied, {"the group is for the hosts of its ranks, and \"",
                                           caller.identity, "\" is none"});
}

std::vector<RpcMethod> RankService::methods() const {
  return {{protocol::ranks::kHello, false},
          {protocol::ranks::kWatch, true},
          {protocol::ranks::kNote, false},
          {protocol::ranks::kPart, false}};
}

void RankService::handle_bytes(size_t method, const Caller& caller,
                               std::span<const RpcView> request, const RpcAsked& asked) {
  if (method == kHello) return handle(method, caller, Message(request), asked);
  MessageBytes bytes(request);
  const std::string head = bytes.take_head();
  const auto said = protocol::read<protocol::RankBytes>(ProtoReader(head));
  check(said);
  if (method == kWatch) return watch(asked);
  if (method == kNote) {
    inbox_->note(said, bytes);
  } else {
    inbox_->part(said, bytes);
  }
  asked.reply({});
}

void RankService::handle(size_t, const Caller&, const Message& request, const RpcAsked& asked) {
  hello(request, asked);
}

void RankService::check(const protocol::RankHello& theirs) const {
  if (theirs.version != own_.version) {
    throw failed_precondition("rank ", theirs.rank, " runs version ", theirs.version,
                              " of Treenail, rank ", own_.rank, " version ", own_.version,
                              "; all ranks need the same");
  }
  if (theirs.size != own_.size || theirs.rank >= own_.size || theirs.group != own_.group) {
    throw invalid_argument("rank ", theirs.rank, " of ", theirs.size, " and rank ", own_.rank,
                           " of ", own_.size,
                           " were given different addresses; all ranks need the same list");
  }
  if (theirs.rank == own_.rank)
    throw invalid_argument("two processes have joined the group as rank ", own_.rank);
}

void RankService::hello(const Message& request, const RpcAsked& asked) {
  const auto theirs = protocol::read<protocol::RankHello>(request.fields());
  check(theirs);
  {
    const std::lock_guard lock(mutex_);
    const auto [known, fresh] = tokens_.try_emplace(theirs.rank, theirs.token);
    if (leaving_ || (!fresh && known->second != theirs.token)) {
      throw error_of(Code::kAborted,
                     {"rank ", own_.rank, " is still in an earlier group, or in one with another ",
                      "process that is rank ", theirs.rank});
    }
  }
  asked.reply(protocol::write(own_));
  const std::lock_guard lock(mutex_);
  greeted_by_.insert(theirs.rank);
  greeted_.notify_all();
}

int64_t RankService::wait_for_greetings(int64_t deadline_ns) {
  constexpr std::chrono::milliseconds kPause{100};
  std::unique_lock lock(mutex_);
  while (greeted_by_.size() + 1 < own_.size) {
    if (monotonic_ns() >= deadline_ns) {
      for (uint64_t rank = 0; rank < own_.size; ++rank) {
        if (rank != own_.rank && !greeted_by_.contains(rank)) return static_cast<int64_t>(rank);
      }
    }
    greeted_.wait_for(lock, kPause);
    lock.unlock();
    poll_interrupt();
    lock.lock();
  }
  return -1;
}

void RankService::check(const protocol::RankBytes& said) const {
  if (said.token != own_.token || said.rank >= own_.size || said.rank == own_.rank)
    throw failed_precondition("what rank ", said.rank, " sends is for another process than rank ",
                              own_.rank, " of this group");
}

void RankService::watch(const RpcAsked& asked) {
  {
    const std::lock_guard lock(mutex_);
    if (!leaving_) watchers_.emplace(asked.id(), asked);
    if (!leaving_ && !asked.abandoned()) return;
    watchers_.erase(asked.id());  // whoever gave it up did so before it was known here
  }
  asked.reply({});
}

void RankService::cancelled(const RpcAsked& asked) {
  {
    const std::lock_guard lock(mutex_);
    if (watchers_.erase(asked.id()) == 0) return;
  }
  asked.reply({});
}

void RankService::say_farewell() {
  std::map<RpcCall*, RpcAsked> watchers;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    watchers.swap(watchers_);
  }
  for (const auto& [call, asked] : watchers) asked.reply({});
}

}  // namespace treenail
