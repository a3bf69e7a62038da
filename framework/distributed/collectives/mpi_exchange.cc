// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/mpi_exchange.h"

#include <algorithm>
#include <list>
#include <map>
#include <string>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/distributed/collectives/exchange_communicator.h"
#include "framework/distributed/collectives/mpi_adapter.h"
#include "framework/distributed/collectives/on_one_host.h"

namespace treenail {
namespace {

constexpr int kNoteTag = 0;
constexpr size_t kMostAtOnce = size_t{1} << 30;  // counts are int

class MpiExchange final : public ByteExchange {
 public:
  MpiExchange(const MpiApi& api, const MpiPlace& place)
      : ByteExchange(place.rank, place.size), api_(api) {}
  const char* name() const override { return "mpi"; }

  Ticket send(int peer, int tag, std::span<const std::byte> bytes,
              const IntrusivePtr<Buffer>& /*memory*/) override {
    return begin(bytes.size(), [&](size_t at, int32_t count, uint64_t* ticket) {
      return api_.send(bytes.data() + at, count, peer, tag, ticket);
    });
  }
  Ticket receive(int peer, int tag, std::span<std::byte> bytes,
                 const IntrusivePtr<Buffer>& /*memory*/) override {
    return begin(bytes.size(), [&](size_t at, int32_t count, uint64_t* ticket) {
      return api_.receive(bytes.data() + at, count, peer, tag, ticket);
    });
  }
  bool done(Ticket& ticket) override {
    const auto found = transfers_.find(ticket);
    if (found == transfers_.end()) return true;
    std::vector<uint64_t>& parts = found->second;
    while (!parts.empty()) {
      if (!tested(&parts.back())) return false;
      parts.pop_back();
    }
    transfers_.erase(found);
    return true;
  }

  void send_note(int peer, std::span<const std::byte> bytes) override {
    drop_sent();
    notes_.push_back({{bytes.begin(), bytes.end()}, 0});
    Sent& sent = notes_.back();
    check(api_.send(sent.bytes.data(), static_cast<int32_t>(bytes.size()), peer, kNoteTag,
                    &sent.ticket));
  }
  bool take_note(int* peer, std::vector<std::byte>* bytes) override {
    int32_t from = -1, count = 0;
    check(api_.probe(-1, kNoteTag, &from, &count));
    if (from < 0) return false;
    bytes->resize(static_cast<size_t>(count));
    uint64_t ticket = 0;
    check(api_.receive(bytes->data(), count, from, kNoteTag, &ticket));
    while (!tested(&ticket)) {  // it is there: only its copy is waited for
    }
    *peer = from;
    return true;
  }

  void close() noexcept override {
    if (generation_ != fork_generation()) return;
    api_.finalize();
  }

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    uint64_t ticket;
  };

  template <class Begin>
  Ticket begin(size_t bytes, const Begin& part) {
    std::vector<uint64_t>& parts = transfers_[++last_];
    for (size_t at = 0; at < bytes; at += kMostAtOnce) {
      parts.push_back(0);
      check(part(at, static_cast<int32_t>(std::min(kMostAtOnce, bytes - at)), &parts.back()));
    }
    return last_;
  }
  bool tested(uint64_t* ticket) const {
    int32_t over = 0;
    check(api_.test(ticket, &over, nullptr));
    return over != 0;
  }
  void drop_sent() {
    for (auto at = notes_.begin(); at != notes_.end() && tested(&at->ticket);)
      at = notes_.erase(at);
  }
  void check(int32_t error) const {
    if (error == 0) return;
    throw Error(Code::kUnavailable, concat("MPI cannot go on: ", mpi_error_text(api_, error)));
  }

  const MpiApi& api_;
  const uint32_t generation_ = fork_generation();
  std::map<Ticket, std::vector<uint64_t>> transfers_;
  Ticket last_ = 0;
  std::list<Sent> notes_;
};

}  // namespace

MpiJoined join_mpi(const MpiGroup& group) {
  const auto [api, place] = begin_mpi(group.announced, MpiUse::kOneThreadAtATime);
  MpiJoined joined;
  joined.local_rank = place.local_rank;
  joined.local_size = place.local_size;
  std::unique_ptr<ByteExchange> exchange = std::make_unique<MpiExchange>(*api, place);
  if (group.prefer_shared_memory && place.size > 1 && place.local_size == place.size) {
    joined.communicator = try_on_one_host(&exchange, {group.join_timeout_ns, group.timeout_ns});
    if (joined.communicator != nullptr) return joined;
  }
  joined.communicator = exchange_communicator(std::move(exchange), group.timeout_ns);
  return joined;
}

}  // namespace treenail
