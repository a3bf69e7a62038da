// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/long_messages.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Nobody goes on with it: a part of the usual size takes so long at half a megabyte a second.
constexpr int64_t kUnusedNs = 300 * kSecond;
// What an entry takes beside its elements, at least.
constexpr uint64_t kEntryBytes = 64 << 10;

}  // namespace

struct LongMessages::Entry {
  uint64_t charge() const { return kEntryBytes + (in ? in->bytes() : out->bytes()); }

  std::optional<IncomingParts> in;           // of a request
  std::shared_ptr<const OutgoingParts> out;  // of a reply
  uint64_t next = 0;                         // of its bytes
  int64_t used = 0;                          // when
  bool busy = false;                         // somebody puts a part
};

LongMessages::LongMessages(int64_t most_bytes, Clock clock)
    : most_bytes_(static_cast<uint64_t>(most_bytes)), clock_(clock) {}

void LongMessages::remove(Entries::iterator at, Entries& gone) {
  const auto held = held_.find(at->first.first);
  held->second -= at->second->charge();
  if (held->second == 0) held_.erase(held);
  gone.insert(entries_.extract(at));
}

LongMessages::Entries LongMessages::take_unused() {
  Entries gone;
  const int64_t now = clock_();
  if (now - looked_ < kSecond) return gone;
  looked_ = now;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    // Of a reply some part may be on its way still, which keeps it.
    const bool used = at->second->busy || (at->second->out && at->second->out.use_count() > 1);
    if (used) at->second->used = now;
    if (now - at->second->used > kUnusedNs) remove(at, gone);
    at = next;
  }
  return gone;
}

void LongMessages::add(const Key& key, std::shared_ptr<Entry> made) {
  Entries gone;  // when the lock is free
  const std::lock_guard lock(mutex_);
  gone = take_unused();
  if (entries_.contains(key)) throw invalid_argument("two messages in parts have one token");
  const auto held = held_.find(key.first);
  const uint64_t before = held == held_.end() ? 0 : held->second;
  const uint64_t charge = made->charge();
  if (before + charge > most_bytes_ + kEntryBytes) {
    throw resource_exhausted("a message of ", charge - kEntryBytes, " bytes in parts; its caller ",
                             "has ", before, " under way at this server, and may have ",
                             most_bytes_, " (--max-message-bytes)");
  }
  made->used = clock_();
  entries_.emplace(key, std::move(made));
  held_[key.first] = before + charge;
}

std::shared_ptr<LongMessages::Entry> LongMessages::use(const Key& key, bool request) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second->in.has_value() != request || at->second->busy) {
    throw invalid_argument(
        "a part of a message that the caller has not begun here, or that was dropped, since "
        "nothing came for long or a part was no good");
  }
  at->second->used = clock_();
  return at->second;
}

void LongMessages::begin(const std::string& caller, std::string_view head) {
  const protocol::InParts parts = parts_of(head);
  auto made = std::make_shared<Entry>();
  made->in.emplace(head, most_bytes_);
  add({caller, parts.token}, std::move(made));
}

void LongMessages::put(const std::string& caller, const protocol::Part& part, MessageBytes& bytes) {
  const Key key{caller, part.token};
  std::shared_ptr<Entry> entry;
  uint64_t next = 0;
  {
    const std::lock_guard lock(mutex_);
    entry = use(key, true);
    next = entry->next;
    entry->busy = part.offset == next;
  }
  // What is out of order, twice there or too much ends the message.
  try {
    if (part.offset != next) {
      throw invalid_argument("a part of a message from byte ", part.offset,
                             " on, where that from byte ", next, " on is to come");
    }
    entry->in->take(bytes);
  } catch (...) {
    drop(caller, part.token);
    throw;
  }
  const std::lock_guard lock(mutex_);
  entry->next = entry->in->bytes() - entry->in->left();
  entry->used = clock_();
  entry->busy = false;
}

std::vector<Tensor> LongMessages::take(const std::string& caller, std::string_view head) {
  Entries gone;
  std::shared_ptr<Entry> entry;
  {
    const Key key{caller, parts_of(head).token};
    const std::lock_guard lock(mutex_);
    entry = use(key, true);
    remove(entries_.find(key), gone);
  }
  if (entry->in->left() > 0)
    throw invalid_argument("a message in parts is to be read, and ", entry->in->left(), " of its ",
                           entry->in->bytes(), " bytes have not come");
  return entry->in->tensors();
}

void LongMessages::keep(const std::string& caller, const std::string& token,
                        std::vector<Tensor> payload) {
  auto made = std::make_shared<Entry>();
  made->out = std::make_shared<const OutgoingParts>(std::move(payload));
  add({caller, token}, std::move(made));
}

std::vector<RpcSlice> LongMessages::get(const std::string& caller, const protocol::Part& part) {
  Entries gone;
  const Key key{caller, part.token};
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Entry> entry = use(key, false);
  const uint64_t left = entry->out->bytes() - entry->next;
  if (part.offset != entry->next || part.bytes == 0 || part.bytes > left ||
      part.bytes > most_part_bytes()) {
    throw invalid_argument(part.bytes, " bytes of a message from byte ", part.offset,
                           " on are asked for, where at most ",
                           std::min<uint64_t>(left, most_part_bytes()), " from byte ", entry->next,
                           " on are to be had");
  }
  std::vector<RpcSlice> slices;
  OutgoingParts::add_slices(entry->out, part.offset, part.bytes, slices);
  entry->next += part.bytes;
  if (part.bytes == left) remove(entries_.find(key), gone);
  return slices;
}

void LongMessages::drop(const std::string& caller, const std::string& token) {
  Entries gone;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find({caller, token});
  if (at != entries_.end()) remove(at, gone);
}

}  // namespace treenail
