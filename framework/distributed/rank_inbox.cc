// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rank_inbox.h"

#include <cstring>

#include "framework/base/error.h"

namespace treenail {
namespace {

// More than a note may have: a descriptor and 64 KiB of values.
constexpr size_t kMostNoteBytes = 1 << 20;
// How far notes may overtake one another.
constexpr uint64_t kMostAhead = 1 << 16;

std::vector<std::byte> rest_of(MessageBytes& bytes) {
  std::vector<std::byte> rest(bytes.left());
  bytes.take(rest.data(), rest.size());
  return rest;
}

}  // namespace

void RankInbox::set_listener(ByteExchange::Listener* listener) {
  const std::lock_guard lock(listener_mutex_);
  listener_ = listener;
}

void RankInbox::ring() const {
  const std::lock_guard lock(listener_mutex_);
  if (listener_ != nullptr) listener_->told();
}

// --- The rank's own thread -----------------------------------------------------------------------

void RankInbox::expect(uint64_t ticket, int peer, int tag, std::span<std::byte> bytes,
                       IntrusivePtr<Buffer> memory) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = senders_[static_cast<size_t>(peer)].numbers[tag]++;
  const Line line{peer, tag, number};
  Transfer& transfer = transfers_[line];
  transfer.expected = true;
  transfer.to = bytes;
  transfer.memory = std::move(memory);
  tickets_[ticket] = line;
  for (const Early& early : transfer.early) {
    if (early.offset + early.bytes.size() > bytes.size()) continue;  // done() says so
    std::memcpy(bytes.data() + early.offset, early.bytes.data(), early.bytes.size());
    transfer.come += early.bytes.size();
  }
  transfer.early.clear();
}

void RankInbox::check_size(const Transfer& transfer) {
  if (transfer.total == 0 || transfer.total == transfer.to.size()) return;
  throw invalid_argument("a rank sends ", transfer.total, " bytes where ", transfer.to.size(),
                         " are expected");
}

bool RankInbox::done(uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return true;
  const auto transfer = transfers_.find(found->second);
  check_size(transfer->second);
  if (transfer->second.come < transfer->second.to.size()) return false;
  transfers_.erase(transfer);
  tickets_.erase(found);
  return true;
}

bool RankInbox::take_note(int* peer, std::vector<std::byte>* bytes) {
  const std::lock_guard lock(mutex_);
  for (size_t from = 0; from < senders_.size(); ++from) {
    Sender& sender = senders_[from];
    const auto next = sender.notes.find(sender.next_note);
    if (next == sender.notes.end()) continue;
    *peer = static_cast<int>(from);
    *bytes = std::move(next->second);
    sender.notes.erase(next);
    ++sender.next_note;
    return true;
  }
  return false;
}

bool RankInbox::take_loss(int* peer, std::string* why) {
  const std::lock_guard lock(mutex_);
  for (size_t from = 0; from < senders_.size(); ++from) {
    Sender& sender = senders_[from];
    if (!sender.lost || sender.told || sender.notes.contains(sender.next_note)) continue;
    sender.told = true;
    *peer = static_cast<int>(from);
    *why = sender.why;
    return true;
  }
  return false;
}

// --- Any thread ----------------------------------------------------------------------------------

void RankInbox::part(const protocol::RankBytes& said, MessageBytes& bytes) {
  const size_t size = bytes.left();
  if (size == 0 || said.total < size || said.offset > said.total - size)
    throw invalid_argument("a part of ", size, " bytes at ", said.offset, " is none of ",
                           said.total);
  const Line line{said.rank, said.tag, said.number};
  std::byte* to = nullptr;
  IntrusivePtr<Buffer> memory;
  {
    const std::lock_guard lock(mutex_);
    Transfer& transfer = transfers_[line];
    transfer.total = said.total;
    if (transfer.expected && transfer.to.size() == said.total) {
      to = transfer.to.data() + said.offset;
      memory = transfer.memory;
    }
  }
  std::vector<std::byte> early;
  if (to != nullptr) {
    bytes.take(to, size);
  } else {
    early = rest_of(bytes);
  }
  {
    const std::lock_guard lock(mutex_);
    Transfer& transfer = transfers_[line];
    if (to == nullptr && !transfer.expected) {
      transfer.early.push_back({said.offset, std::move(early)});
    } else if (to != nullptr || transfer.to.size() == said.total) {
      if (to == nullptr) std::memcpy(transfer.to.data() + said.offset, early.data(), size);
      transfer.come += size;
    }
  }
  ring();
}

void RankInbox::note(const protocol::RankBytes& said, MessageBytes& bytes) {
  if (bytes.left() > kMostNoteBytes)
    throw invalid_argument("a note of ", bytes.left(), " bytes is too long");
  std::vector<std::byte> text = rest_of(bytes);
  {
    const std::lock_guard lock(mutex_);
    Sender& sender = senders_[said.rank];
    if (said.number < sender.next_note || said.number - sender.next_note > kMostAhead)
      throw invalid_argument("note ", said.number, " of rank ", said.rank, " is out of order");
    sender.notes.try_emplace(said.number, std::move(text));
  }
  ring();
}

void RankInbox::lost(int peer, std::string why) {
  {
    const std::lock_guard lock(mutex_);
    Sender& sender = senders_[static_cast<size_t>(peer)];
    if (sender.lost) return;
    sender.lost = true;
    sender.why = std::move(why);
  }
  ring();
}

}  // namespace treenail
