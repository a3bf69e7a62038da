// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/shared_memory_communicator.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "framework/base/text.h"
#include "framework/distributed/collectives/engine.h"
#include "framework/distributed/collectives/parts.h"
#include "framework/distributed/collectives/rank_order.h"
#include "framework/distributed/collectives/shared_meeting.h"
#include "framework/distributed/collectives/shared_table.h"

namespace treenail {
namespace {

enum Note : uint32_t { kWake = 1, kLeave = 2 };

class SharedMemoryCommunicator final : public Engine {
 public:
  SharedMemoryCommunicator(const SharedMemoryGroup& group, SharedMeeting meeting)
      : Engine(group.rank, group.size, group.timeout_ns),
        table_(std::move(meeting.table)),
        peers_(static_cast<size_t>(group.size)),
        kept_(kSharedEntries),
        event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (size_t r = 0; r < peers_.size(); ++r) peers_[r].link = std::move(meeting.links[r]);
    if (event_ < 0) throw resource_exhausted("no descriptor is left for an event");
    start();
  }
  ~SharedMemoryCommunicator() override {
    stop();
    ::close(event_);
  }
  const char* transport() const override { return "shared_memory"; }
  Tensor allocate(DType dtype, const Shape& shape) override;

 protected:
  struct Staged final : Execution {
    std::vector<Tensor> kept;  // inputs that lie in shared memory already
    uint64_t entry = 0;
  };

  std::unique_ptr<Execution> make_execution() override { return std::make_unique<Staged>(); }
  void stage(Execution& execution, Descriptor& own) override;
  bool post(Execution& execution) override;
  bool poll(bool all) override;
  bool advance(Execution& execution) override;
  bool awaits(Execution& execution, int peer) override;
  void finished(Execution& execution) noexcept override;
  void sleep(int milliseconds) override;
  void wake() noexcept override;
  void announce_sleep(bool asleep) override {
    ranks()[rank()].asleep.store(asleep ? 1 : 0, std::memory_order_seq_cst);
  }
  void leave() noexcept override;

 private:
  struct Peer {
    SharedLink link;
    uint64_t seen = 0;  // entries of its ring
    bool left = false;
    bool gone = false;
  };
  struct Kept {
    std::vector<Tensor> tensors;
    bool finished = true;
  };

  SharedRank* ranks() const { return reinterpret_cast<SharedRank*>(table_->data()); }
  SharedEntry& own_entry(uint64_t number) const {
    return ranks()[rank()].entries[number % kSharedEntries];
  }
  SharedEntry& entry_of(const Execution& e, int peer) const {
    return ranks()[peer].entries[e.place[static_cast<size_t>(peer)] % kSharedEntries];
  }
  bool read_ring(int peer);
  bool hear(int peer);
  bool at_hand(int peer, const SharedAddress& address);
  SharedBlock block_of(int peer, const SharedAddress& address);
  void ring_others();
  bool reduce_slice(Execution& execution);
  bool take_result(Execution& execution);
  bool find_values(const Execution& e, std::vector<const std::byte*>* from);

  const IntrusivePtr<Segment> table_;
  std::vector<Peer> peers_;
  std::vector<Kept> kept_;  // by own entry
  SharedPool pool_;         // has a lock of its own
  const int event_;
  uint64_t posted_ = 0;
};

// --- Staging and posting
// --------------------------------------------------------------------------

void SharedMemoryCommunicator::stage(Execution& execution, Descriptor& own) {
  const Collective& c = *execution.collective;
  const size_t bytes = c.input_bytes();
  const auto users = static_cast<uint32_t>(size());
  // First: where it fails, nothing else was taken.
  if (rank() == 0 && is_split(own, size())) own.result = pool_.allocate(bytes, users).address;
  if (bytes == 0) return;
  if (is_split(own, size()) && c.inputs.size() == 1 && c.inputs[0].borrowed() &&
      pool_.find(c.inputs[0].raw(), bytes, &own.data)) {
    own.in_place = 1;
    static_cast<Staged&>(execution).kept = c.inputs;
    return;
  }
  const SharedBlock block = pool_.allocate(bytes, users);
  pack_inputs(c, block.data);
  own.data = block.address;
}

Tensor SharedMemoryCommunicator::allocate(DType dtype, const Shape& shape) {
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * dtype_size(dtype);
  if (bytes <= kSplitBytes || size() == 1 || forked()) return Tensor(dtype, shape);
  try {
    return Tensor(dtype, shape, shared_buffer(pool_.allocate(bytes, 1), bytes));
  } catch (const Error&) {  // then it is copied when it is submitted, or there is no room either
    return Tensor(dtype, shape);
  }
}

bool SharedMemoryCommunicator::post(Execution& execution) {
  Kept& kept = kept_[posted_ % kSharedEntries];
  SharedEntry& entry = own_entry(posted_);
  const auto others = static_cast<uint32_t>(size() - 1);
  const bool used = posted_ >= kSharedEntries;
  if (used && (!kept.finished || entry.acknowledged.load(std::memory_order_acquire) < others))
    return false;
  for (int peer = 0; peer < size(); ++peer) {
    Peer& p = peers_[static_cast<size_t>(peer)];
    if (peer != rank() && !p.gone && !p.link.offer(pool_)) return false;
  }
  auto& staged = static_cast<Staged&>(execution);
  staged.entry = posted_;
  execution.place[static_cast<size_t>(rank())] = posted_;
  kept.tensors = std::move(staged.kept);
  kept.finished = false;
  entry.acknowledged.store(0, std::memory_order_relaxed);
  entry.phase.store(0, std::memory_order_relaxed);
  entry.descriptor = execution.by_rank[static_cast<size_t>(rank())];
  ranks()[rank()].posted.store(++posted_, std::memory_order_seq_cst);
  ring_others();
  return true;
}

void SharedMemoryCommunicator::ring_others() {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || ranks()[peer].asleep.load(std::memory_order_seq_cst) == 0) continue;
    if (ranks()[peer].asleep.exchange(0) == 0) continue;
    SharedNote note;
    note.kind = kWake;
    peers_[static_cast<size_t>(peer)].link.send(pool_, note);
  }
}

// --- What the peers say
// ---------------------------------------------------------------------------

bool SharedMemoryCommunicator::read_ring(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  const uint64_t posted = ranks()[peer].posted.load(std::memory_order_seq_cst);
  const bool moved = p.seen < posted;
  for (; p.seen < posted; ++p.seen) {
    const Descriptor copy = ranks()[peer].entries[p.seen % kSharedEntries].descriptor;
    arrived(peer, p.seen, copy);
  }
  return moved;
}

// Takes what came over the socket. True where the peer is gone.
bool SharedMemoryCommunicator::hear(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  SharedNote note;
  auto got = LocalConnection::Received::kClosed;
  try {
    while ((got = p.link.receive(&note)) == LocalConnection::Received::kMessage)
      p.left = p.left || note.kind == kLeave;
  } catch (const Error&) {  // a segment of which the limit, or its seals, let nothing be used
    got = LocalConnection::Received::kClosed;
  }
  if (got == LocalConnection::Received::kNothing) return false;
  p.gone = true;
  read_ring(peer);
  departed(peer, p.left,
           concat("rank ", peer, " (process ", p.link.connection().peer_process(), ") has ",
                  p.left ? "left the group" : "ended"));
  return true;
}

bool SharedMemoryCommunicator::poll(bool all) {
  bool moved = false;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || peers_[static_cast<size_t>(peer)].gone) continue;
    moved = read_ring(peer) || moved;
    if (all) moved = hear(peer) || moved;
  }
  return moved;
}

// Whether the address can be read: its segment may still be on the way.
bool SharedMemoryCommunicator::at_hand(int peer, const SharedAddress& address) {
  if (peer == rank() || address.bytes == 0) return true;
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.link.knows(address.segment)) return true;
  if (!p.gone) hear(peer);
  return p.link.knows(address.segment);
}

SharedBlock SharedMemoryCommunicator::block_of(int peer, const SharedAddress& address) {
  if (peer == rank()) return pool_.at(address);
  return peers_[static_cast<size_t>(peer)].link.block(address);
}

// --- Going on
// -------------------------------------------------------------------------------------

// Where the parts that this rank needs lie; false where a segment is still on the way.
bool SharedMemoryCommunicator::find_values(const Execution& e,
                                           std::vector<const std::byte*>* from) {
  for (int peer = 0; peer < size(); ++peer) {
    const Descriptor& d = e.by_rank[static_cast<size_t>(peer)];
    const Part part = needed_part(d, peer, rank(), size());
    from->push_back(nullptr);
    if (part.count == 0) continue;
    if (!at_hand(peer, d.data)) return false;
    if (d.data.bytes < input_bytes(d))
      throw invalid_argument("rank ", peer, " offers ", d.data.bytes, " bytes, not the ",
                             input_bytes(d), " that it has described");
    from->back() =
        block_of(peer, d.data).data + static_cast<size_t>(part.begin) * dtype_size(d.dtype);
  }
  return true;
}

bool SharedMemoryCommunicator::advance(Execution& e) {
  if (e.phase == 1) return take_result(e);
  if (is_split(e.by_rank[0], size())) return reduce_slice(e) && take_result(e);
  std::vector<const std::byte*> from;
  if (!find_values(e, &from)) return false;
  set_outputs(*e.collective, e.by_rank, from);
  return true;
}

// Its slice, or a segment that it has sent.
bool SharedMemoryCommunicator::awaits(Execution& e, int peer) {
  if (e.phase > 0) return entry_of(e, peer).phase.load(std::memory_order_acquire) == 0;
  const Descriptor& d = e.by_rank[static_cast<size_t>(peer)];
  return !at_hand(peer, d.data) || !at_hand(peer, d.result);
}

bool SharedMemoryCommunicator::reduce_slice(Execution& e) {
  const Descriptor& d = e.by_rank[0];
  std::vector<const std::byte*> from;
  if (!at_hand(0, d.result) || !find_values(e, &from)) return false;
  if (d.result.bytes < input_bytes(d))
    throw invalid_argument("rank 0 offers ", d.result.bytes, " bytes for a result of ",
                           input_bytes(d));
  const Part slice = slice_of(d.elements, rank(), size());
  reduce_in_rank_order(
      d.dtype, d.reduction, from,
      block_of(0, d.result).data + static_cast<size_t>(slice.begin) * dtype_size(d.dtype),
      slice.count);
  e.phase = 1;
  own_entry(e.place[static_cast<size_t>(rank())]).phase.store(1, std::memory_order_seq_cst);
  ring_others();
  return true;
}

bool SharedMemoryCommunicator::take_result(Execution& e) {
  for (int peer = 0; peer < size(); ++peer) {
    if (entry_of(e, peer).phase.load(std::memory_order_acquire) == 0) return false;
  }
  const SharedAddress& result = e.by_rank[0].result;
  set_outputs_over(*e.collective, shared_buffer(block_of(0, result), result.bytes));
  e.phase = 2;
  return true;
}

void SharedMemoryCommunicator::finished(Execution& e) noexcept {
  const auto release = [&](int owner, const SharedAddress& address) {
    try {
      if (address.bytes > 0 && at_hand(owner, address)) block_of(owner, address).release();
    } catch (const Error&) {  // no such block: nothing to release
    }
  };
  if (e.phase != 2) release(0, e.by_rank[0].result);
  for (int peer = 0; peer < size(); ++peer) {
    const Descriptor& d = e.by_rank[static_cast<size_t>(peer)];
    if (d.in_place == 0) release(peer, d.data);
    if (peer != rank()) entry_of(e, peer).acknowledged.fetch_add(1, std::memory_order_acq_rel);
  }
  Kept& kept = kept_[e.place[static_cast<size_t>(rank())] % kSharedEntries];
  if (e.phase == 2) kept.tensors.clear();  // all have reduced their slices of them
  kept.finished = true;
}

// --- Sleeping and leaving
// -------------------------------------------------------------------------

void SharedMemoryCommunicator::sleep(int milliseconds) {
  std::vector<pollfd> descriptors{{event_, POLLIN, 0}};
  for (const Peer& peer : peers_) {
    if (peer.link.fd() >= 0 && !peer.gone) descriptors.push_back({peer.link.fd(), POLLIN, 0});
  }
  ::poll(descriptors.data(), descriptors.size(), milliseconds);
  uint64_t count = 0;
  while (::read(event_, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

void SharedMemoryCommunicator::wake() noexcept {
  const uint64_t one = 1;
  while (::write(event_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void SharedMemoryCommunicator::leave() noexcept {
  for (Peer& peer : peers_) {
    if (peer.link.fd() < 0 || peer.gone) continue;
    SharedNote note;
    note.kind = kLeave;
    peer.link.send(pool_, note);
    peer.link = SharedLink();
    peer.gone = true;
  }
}

}  // namespace

std::shared_ptr<Communicator> join_shared_memory(const SharedMemoryGroup& group) {
  if (group.size < 1 || group.size > 1024 || group.rank < 0 || group.rank >= group.size) {
    throw invalid_argument("rank ", group.rank, " of ", group.size,
                           ": a group has 1 to 1024 ranks, counted from 0");
  }
  const size_t table_bytes = sizeof(SharedRank) * static_cast<size_t>(group.size);
  return std::make_shared<SharedMemoryCommunicator>(group, meet(group, table_bytes));
}

}  // namespace treenail
