// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rank_outbox.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/spin.h"
#include "framework/distributed/say_error.h"

namespace treenail {
namespace {

// Smaller parts cost calls, larger ones leave one end idle.
constexpr size_t kPartBytes = 1 << 20;
constexpr int kPartsUnderWay = 4;

}  // namespace

// --- Answers -------------------------------------------------------------------------------------

class RankOutbox::PartSent final : public RpcPeer::Answer {
 public:
  PartSent(std::shared_ptr<RankOutbox> of, Part part)
      : of_(std::move(of)), part_(std::move(part)) {}
  void answered(std::exception_ptr error, const Message*) noexcept override {
    const std::unique_ptr<PartSent> self(this);
    if (error != nullptr) return of_->failed(part_.peer, error);
    of_->taken(part_);
  }

 private:
  const std::shared_ptr<RankOutbox> of_;
  const Part part_;
};

class RankOutbox::NoteSent final : public RpcPeer::Answer {
 public:
  NoteSent(std::shared_ptr<RankOutbox> of, int peer) : of_(std::move(of)), peer_(peer) {}
  void answered(std::exception_ptr error, const Message*) noexcept override {
    const std::unique_ptr<NoteSent> self(this);
    {
      const std::lock_guard lock(of_->mutex_);
      --of_->notes_under_way_;
    }
    if (error != nullptr) of_->failed(peer_, error);
  }

 private:
  const std::shared_ptr<RankOutbox> of_;
  const int peer_;
};

// A peer that leaves answers, after its last note; one that is lost does not. Where the link to
// here alone is cut the note is lost, and the answer all that tells of it.
class RankOutbox::Watching final : public RpcPeer::Answer {
 public:
  Watching(std::shared_ptr<RankOutbox> of, int peer) : of_(std::move(of)), peer_(peer) {}
  void answered(std::exception_ptr error, const Message*) noexcept override {
    const std::unique_ptr<Watching> self(this);
    if (error != nullptr) return of_->failed(peer_, error);
    of_->inbox_->lost(peer_, concat("rank ", peer_, " has left the group, which it could not say"));
  }

 private:
  const std::shared_ptr<RankOutbox> of_;
  const int peer_;
};

// --- Sending -------------------------------------------------------------------------------------

RankOutbox::RankOutbox(int rank, std::vector<std::unique_ptr<RpcPeer>> peers,
                       std::vector<std::string> tokens, std::shared_ptr<RankInbox> inbox)
    : rank_(rank),
      peers_(std::move(peers)),
      tokens_(std::move(tokens)),
      inbox_(std::move(inbox)),
      lines_(peers_.size()) {}

protocol::RankBytes RankOutbox::head(int peer) const {
  protocol::RankBytes said;
  said.token = tokens_[static_cast<size_t>(peer)];
  said.rank = static_cast<uint64_t>(rank_);
  return said;
}

void RankOutbox::send(uint64_t ticket, int peer, int tag, std::span<const std::byte> bytes,
                      IntrusivePtr<Buffer> memory) {
  std::vector<Part> parts;
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[static_cast<size_t>(peer)];
    auto transfer = std::make_shared<Transfer>(
        Transfer{ticket, tag, line.numbers[tag]++, bytes, std::move(memory)});
    if (bytes.empty()) return;
    pending_.insert(ticket);
    line.waiting.push_back(std::move(transfer));
    parts = begin_parts(peer);
  }
  start(parts);
}

// With the lock held.
std::vector<RankOutbox::Part> RankOutbox::begin_parts(int peer) {
  std::vector<Part> parts;
  Line& line = lines_[static_cast<size_t>(peer)];
  while (line.under_way < kPartsUnderWay && !line.waiting.empty()) {
    const std::shared_ptr<Transfer>& transfer = line.waiting.front();
    const size_t size = std::min(kPartBytes, transfer->bytes.size() - transfer->next);
    parts.push_back({peer, transfer, transfer->next, size});
    transfer->next += size;
    ++line.under_way;
    if (transfer->next == transfer->bytes.size()) line.waiting.pop_front();
  }
  return parts;
}

void RankOutbox::start(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const Transfer& transfer = *part.transfer;
    protocol::RankBytes said = head(part.peer);
    said.tag = static_cast<uint64_t>(transfer.tag);
    said.number = transfer.number;
    said.offset = part.offset;
    said.total = transfer.bytes.size();
    const auto* const base = static_cast<const std::byte*>(transfer.memory->data());
    const auto at = static_cast<size_t>(transfer.bytes.data() - base) + part.offset;
    const Tensor bytes(DType::kUInt8, Shape({static_cast<int64_t>(part.size)}), transfer.memory,
                       at);
    auto* const answer = new PartSent(shared_from_this(), part);
    try {
      peers_[static_cast<size_t>(part.peer)]->start(protocol::ranks::kPart, protocol::write(said),
                                                    std::span(&bytes, 1), 0, *answer);
    } catch (...) {
      answer->answered(std::current_exception(), nullptr);
    }
  }
}

void RankOutbox::taken(const Part& part) {
  std::vector<Part> more;
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    --lines_[static_cast<size_t>(part.peer)].under_way;
    part.transfer->taken += part.size;
    over = part.transfer->taken == part.transfer->bytes.size();
    if (over) pending_.erase(part.transfer->ticket);
    more = begin_parts(part.peer);
  }
  start(more);
  if (over) inbox_->ring();
}

void RankOutbox::failed(int peer, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    lines_[static_cast<size_t>(peer)].waiting.clear();
  }
  inbox_->lost(peer, text_of(error));
}

bool RankOutbox::done(uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  return !pending_.contains(ticket);
}

void RankOutbox::send_note(int peer, std::span<const std::byte> bytes) {
  protocol::RankBytes said = head(peer);
  {
    const std::lock_guard lock(mutex_);
    said.number = lines_[static_cast<size_t>(peer)].notes++;
    ++notes_under_way_;
  }
  Tensor text(DType::kUInt8, Shape({static_cast<int64_t>(bytes.size())}));
  if (!bytes.empty()) std::memcpy(text.raw(), bytes.data(), bytes.size());
  auto* const answer = new NoteSent(shared_from_this(), peer);
  try {
    peers_[static_cast<size_t>(peer)]->start(protocol::ranks::kNote, protocol::write(said),
                                             std::span(&text, 1), 0, *answer);
  } catch (...) {
    answer->answered(std::current_exception(), nullptr);
  }
}

void RankOutbox::watch() {
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer] == nullptr) continue;
    auto* const answer = new Watching(shared_from_this(), static_cast<int>(peer));
    lines_[peer].watch = peers_[peer]->start(
        protocol::ranks::kWatch, protocol::write(head(static_cast<int>(peer))), {}, 0, *answer);
  }
}

void RankOutbox::finish(int64_t deadline_ns) {
  const auto busy = [this] {
    const std::lock_guard lock(mutex_);
    return notes_under_way_ > 0;
  };
  while (busy() && monotonic_ns() < deadline_ns) {
    const timespec moment{0, 500'000};
    ::nanosleep(&moment, nullptr);
  }
  for (Line& line : lines_) {
    if (line.watch != nullptr) line.watch->cancel();
    line.watch.reset();
  }
}

}  // namespace treenail
