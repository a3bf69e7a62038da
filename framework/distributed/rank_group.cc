// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rank_group.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <thread>
#include <utility>

#include "build_info.h"
#include "framework/base/error.h"
#include "framework/base/hash.h"
#include "framework/base/interrupt.h"
#include "framework/base/random_token.h"
#include "framework/base/spin.h"
#include "framework/base/text.h"
#include "framework/distributed/collectives/exchange_communicator.h"
#include "framework/distributed/collectives/on_one_host.h"
#include "framework/distributed/own_figures.h"
#include "framework/distributed/rank_exchange.h"
#include "framework/distributed/server_address.h"

namespace treenail {
namespace {

uint64_t hash_addresses(const std::vector<std::string>& addresses) {
  uint64_t hash = addresses.size();
  for (const std::string& address : addresses)
    hash = hash_bytes(address.data(), address.size(), hash);
  return hash;
}

void check(const RankGroup& group) {
  const int size = static_cast<int>(group.addresses.size());
  if (group.rank < 0 || group.rank >= size)
    throw invalid_argument("rank ", group.rank, " is not in [0, ", size,
                           "), the ranks that have addresses");
  std::set<std::string> seen;
  for (const std::string& address : group.addresses) {
    host_of(address);
    if (!seen.insert(address).second)
      throw invalid_argument("the address ", address, " is given for two ranks");
  }
}

class Joining {
 public:
  explicit Joining(const RankGroup& group)
      : group_(group),
        size_(static_cast<int>(group.addresses.size())),
        deadline_(monotonic_ns() + group.join_timeout_ns),
        own_(greeting(group)),
        inbox_(std::make_shared<RankInbox>(size_)) {}

  RanksJoined run() {
    const std::string address =
        listening_address(group_.listen.empty() ? own_address() : group_.listen,
                          group_.credentials != nullptr, group_.plain_text);
    auto service = std::make_unique<RankService>(own_, inbox_,
                                                 Admission(group_.addresses, group_.credentials));
    RpcListenerOptions options;
    options.patience = group_.patience;
    options.credentials = group_.credentials;
    auto listener = std::make_unique<RpcListener>(*service, address, options);
    for (int peer = 0; peer < size_; ++peer) call(peer, *service);
    wait_for_greetings(*service);
    auto outbox =
        std::make_shared<RankOutbox>(group_.rank, std::move(peers_), std::move(tokens_), inbox_);
    outbox->watch();
    return communicator(std::make_unique<RankExchange>(
        group_.rank, size_,
        RankExchange::Parts{inbox_, std::move(outbox), std::move(service), std::move(listener)}));
  }

 private:
  const std::string& own_address() const {
    return group_.addresses[static_cast<size_t>(group_.rank)];
  }

  // Waits until the peer is there, and greets it.
  void call(int peer, const RankService& service) {
    peers_.emplace_back();
    tokens_.emplace_back();
    if (peer == group_.rank) {
      hosts_.push_back(own_.host);
      return;
    }
    const std::string& address = group_.addresses[static_cast<size_t>(peer)];
    peers_.back() = std::make_unique<RpcPeer>(concat("rank ", peer, " (", address, ")"), address,
                                              group_.patience, group_.credentials);
    const Message reply = greet(*peers_.back());
    const auto theirs = protocol::read<protocol::RankHello>(reply.fields());
    service.check(theirs);
    if (theirs.rank != static_cast<uint64_t>(peer))
      throw invalid_argument("at ", address, " answers rank ", theirs.rank, " instead of rank ",
                             peer);
    tokens_.back() = theirs.token;
    hosts_.push_back(theirs.host);
  }

  void wait_for_greetings(RankService& service) const {
    const int64_t late = service.wait_for_greetings(deadline_);
    if (late < 0) return;
    throw error_of(Code::kDeadlineExceeded,
                   {"rank ", late, " (", group_.addresses[static_cast<size_t>(late)],
                    ") answers, but has not called rank ", group_.rank, " in time"});
  }

  // What is in an earlier group with this rank yet is about to leave it, or to be started anew.
  Message greet(const RpcPeer& peer) const {
    constexpr std::chrono::milliseconds kPause{20};
    std::exception_ptr why;  // it leaves, or has left
    for (;;) {
      RpcPeer::Options options;
      options.wait_for_ready = options.repeatable = true;
      options.timeout_ms = std::max<int64_t>((deadline_ - monotonic_ns()) / 1'000'000, 1);
      try {
        return peer.call(protocol::ranks::kHello, protocol::write(own_), {}, options);
      } catch (const Error& error) {
        const bool leaves = error.code() == Code::kAborted || error.code() == Code::kUnavailable;
        if (error.code() == Code::kDeadlineExceeded && why != nullptr) std::rethrow_exception(why);
        if (!leaves || monotonic_ns() > deadline_) throw;
        why = std::current_exception();
      }
      poll_interrupt();
      std::this_thread::sleep_for(kPause);
    }
  }

  RanksJoined communicator(std::unique_ptr<ByteExchange> exchange) {
    RanksJoined joined;
    const auto end = hosts_.begin() + group_.rank;
    joined.local_rank = static_cast<int>(std::count(hosts_.begin(), end, own_.host));
    joined.local_size = static_cast<int>(std::count(hosts_.begin(), hosts_.end(), own_.host));
    if (group_.prefer_shared_memory && size_ > 1 && joined.local_size == size_) {
      const OneHostLimits limits{std::max<int64_t>(deadline_ - monotonic_ns(), 1),
                                 group_.timeout_ns};
      joined.communicator = try_on_one_host(&exchange, limits);
    }
    if (joined.communicator == nullptr)
      joined.communicator = exchange_communicator(std::move(exchange), group_.timeout_ns);
    return joined;
  }

  const RankGroup& group_;
  const int size_;
  const int64_t deadline_;
  const protocol::RankHello own_;
  const std::shared_ptr<RankInbox> inbox_;
  std::vector<std::unique_ptr<RpcPeer>> peers_;
  std::vector<std::string> tokens_, hosts_;
};

}  // namespace

protocol::RankHello greeting(const RankGroup& group) {
  check(group);
  return {std::string(build_info::kVersion),
          hash_addresses(group.addresses),
          static_cast<uint64_t>(group.rank),
          group.addresses.size(),
          random_token(),
          kernel_and_user()};
}

RanksJoined join_ranks(const RankGroup& group) {
  check(group);
  if (group.addresses.size() == 1) return {single_communicator(), 0, 1};
  return Joining(group).run();
}

}  // namespace treenail
