// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/exchange_communicator.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <utility>

#include "framework/base/spin.h"
#include "framework/base/text.h"
#include "framework/distributed/collectives/engine.h"
#include "framework/distributed/collectives/parts.h"
#include "framework/distributed/collectives/rank_order.h"

namespace treenail {
namespace {

constexpr uint64_t kMostOutstanding = 4096;
constexpr int64_t kFarewellNs = 5'000'000'000;
constexpr auto kLeast = std::chrono::microseconds(20);  // between looks while something is awaited
constexpr auto kMost = std::chrono::microseconds(500);

struct Note {
  uint64_t place = 0;  // the sender's count of executions
  uint32_t leaves = 0;
  uint32_t unused = 0;
  Descriptor descriptor;
};

// Values so small travel with the note.
bool is_eager(const Descriptor& d) { return input_bytes(d) <= kSplitBytes; }

// Two tags for each of the executions that may be outstanding.
int tag_of(uint64_t place, int phase) {
  return static_cast<int>(1 + place % (2 * kMostOutstanding) * 2) + phase;
}

// Bytes of a rank: uninitialised memory that is used again, or what a note has brought.
struct Values {
  Tensor memory;
  std::vector<std::byte> brought;

  void allocate(size_t bytes) {
    memory = Tensor(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
  }
  std::span<std::byte> bytes() {
    if (!memory.defined()) return brought;
    return {static_cast<std::byte*>(memory.raw()), memory.bytes()};
  }
  const IntrusivePtr<Buffer>& buffer() const { return memory.buffer(); }
};

// What allocate() gives: it is known again when it is submitted, and its bytes are sent from where
// they are.
class GroupMemory final : public Buffer {
 public:
  explicit GroupMemory(IntrusivePtr<Buffer> memory)
      : Buffer(memory->data(), memory->bytes(), Kind::kBorrowed), memory_(std::move(memory)) {}

 private:
  const IntrusivePtr<Buffer> memory_;
};

bool lies_in_group_memory(const Collective& c) {
  return c.inputs.size() == 1 &&
         dynamic_cast<const GroupMemory*>(c.inputs[0].buffer().get()) != nullptr;
}

class ExchangeCommunicator final : public Engine, private ByteExchange::Listener {
 public:
  ExchangeCommunicator(std::unique_ptr<ByteExchange> exchange, int64_t timeout_ns)
      : Engine(exchange->rank(), exchange->size(), timeout_ns),
        exchange_(std::move(exchange)),
        left_(static_cast<size_t>(size())) {
    notified_ = exchange_->notify(this);
    start();
  }
  ~ExchangeCommunicator() override {
    stop();
    exchange_->notify(nullptr);
  }
  const char* transport() const override { return exchange_->name(); }
  Tensor allocate(DType dtype, const Shape& shape) override {
    if (size() == 1 || forked()) return Tensor(dtype, shape);
    return Tensor(dtype, shape,
                  make_counted<GroupMemory>(Buffer::allocate(dtype, shape.num_elements())));
  }

 protected:
  struct Transfer {
    ByteExchange::Ticket ticket;
    int peer;
    bool sends;
  };
  struct Moving final : Execution {
    Values packed;  // this rank's
    std::vector<Values> received;
    std::vector<Transfer> transfers;
    IntrusivePtr<Buffer> result;  // of a split all-reduce
  };

  std::unique_ptr<Execution> make_execution() override { return std::make_unique<Moving>(); }
  void stage(Execution& execution, Descriptor& own) override;
  bool post(Execution& execution) override;
  bool poll(bool all) override;
  bool advance(Execution& execution) override;
  bool awaits(Execution& execution, int peer) override;
  bool has_all_of_who_left() const override { return !exchange_->ends_together(); }
  void finished(Execution& execution) noexcept override;
  void sleep(int milliseconds) override;
  void wake() noexcept override;
  void leave() noexcept override;

 private:
  void told() noexcept override { wake(); }
  std::span<const std::byte> own_part(Moving& e, int peer) const;
  bool is_over(Transfer& transfer);
  bool all_done(Moving& e);
  void begin_transfer(Moving& e);
  void begin_gather(Moving& e);
  std::vector<const std::byte*> sources(Moving& e) const;

  const std::unique_ptr<ByteExchange> exchange_;
  bool notified_ = false;
  std::map<std::pair<int, uint64_t>, std::vector<std::byte>> brought_;  // by notes: rank, place
  std::vector<bool> left_;
  uint64_t posted_ = 0;
  uint64_t finished_ = 0;

  std::mutex sleep_mutex_;
  std::condition_variable awake_;
  bool woken_ = false;
  std::chrono::microseconds pause_ = kLeast;
};

void ExchangeCommunicator::stage(Execution& execution, Descriptor&) {
  auto& e = static_cast<Moving&>(execution);
  if (lies_in_group_memory(*e.collective)) {
    e.packed.memory = e.collective->inputs[0];
    return;
  }
  e.packed.allocate(e.collective->input_bytes());
  pack_inputs(*e.collective, e.packed.bytes().data());
}

// What `peer` needs of this rank's values.
std::span<const std::byte> ExchangeCommunicator::own_part(Moving& e, int peer) const {
  const Descriptor& d = e.by_rank[static_cast<size_t>(rank())];
  const Part part = needed_part(d, rank(), peer, size());
  const size_t element = dtype_size(d.dtype);
  return {e.packed.bytes().data() + static_cast<size_t>(part.begin) * element,
          static_cast<size_t>(part.count) * element};
}

bool ExchangeCommunicator::post(Execution& execution) {
  if (posted_ - finished_ >= kMostOutstanding) return false;
  auto& e = static_cast<Moving&>(execution);
  Note note;
  note.place = posted_;
  note.descriptor = e.by_rank[static_cast<size_t>(rank())];
  e.place[static_cast<size_t>(rank())] = posted_++;
  std::vector<std::byte> bytes(sizeof(note));
  std::memcpy(bytes.data(), &note, sizeof(note));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || left_[static_cast<size_t>(peer)]) continue;
    bytes.resize(sizeof(note));
    if (note.descriptor.error == 0 && is_eager(note.descriptor)) {
      const std::span<const std::byte> part = own_part(e, peer);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    exchange_->send_note(peer, bytes);
  }
  return true;
}

bool ExchangeCommunicator::poll(bool) {
  bool moved = false;
  int peer = 0;
  std::vector<std::byte> bytes;
  while (exchange_->take_note(&peer, &bytes)) {
    moved = true;
    Note note;
    if (bytes.size() < sizeof(note)) continue;
    std::memcpy(&note, bytes.data(), sizeof(note));
    if (note.leaves != 0) {
      left_[static_cast<size_t>(peer)] = true;
      departed(peer, true, concat("rank ", peer, " has left the group"));
      continue;
    }
    brought_[{peer, note.place}].assign(bytes.begin() + sizeof(note), bytes.end());
    arrived(peer, note.place, note.descriptor);
  }
  for (std::string why; exchange_->take_loss(&peer, &why);) {
    moved = true;
    if (left_[static_cast<size_t>(peer)]) continue;
    left_[static_cast<size_t>(peer)] = true;
    departed(peer, false, why);
  }
  return moved;
}

// What is sent to a rank that has left nobody waits for; its answer may be lost with it.
bool ExchangeCommunicator::is_over(Transfer& transfer) {
  if (exchange_->done(transfer.ticket)) return true;
  return transfer.sends && left_[static_cast<size_t>(transfer.peer)] && has_all_of_who_left();
}

bool ExchangeCommunicator::all_done(Moving& e) {
  while (!e.transfers.empty()) {
    if (!is_over(e.transfers.back())) return false;
    e.transfers.pop_back();
  }
  return true;
}

void ExchangeCommunicator::begin_transfer(Moving& e) {
  e.received.resize(static_cast<size_t>(size()));
  const auto r = static_cast<size_t>(rank());
  for (int peer = 0; peer < size(); ++peer) {
    const auto p = static_cast<size_t>(peer);
    const Descriptor& d = e.by_rank[p];
    if (peer == rank()) continue;
    if (!is_eager(d)) {
      const Part part = needed_part(d, peer, rank(), size());
      e.received[p].allocate(static_cast<size_t>(part.count) * dtype_size(d.dtype));
      if (part.count > 0)
        e.transfers.push_back({exchange_->receive(peer, tag_of(e.place[p], 0),
                                                  e.received[p].bytes(), e.received[p].buffer()),
                               peer, false});
    } else {
      e.received[p].brought = std::move(brought_[{peer, e.place[p]}]);
    }
  }
  if (is_eager(e.by_rank[r])) return;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || own_part(e, peer).empty()) continue;
    e.transfers.push_back(
        {exchange_->send(peer, tag_of(e.place[r], 0), own_part(e, peer), e.packed.buffer()), peer,
         true});
  }
}

// Where the parts that this rank needs lie.
std::vector<const std::byte*> ExchangeCommunicator::sources(Moving& e) const {
  std::vector<const std::byte*> from;
  for (int peer = 0; peer < size(); ++peer) {
    const auto p = static_cast<size_t>(peer);
    const Descriptor& d = e.by_rank[p];
    const std::span<const std::byte> part =
        peer == rank() ? own_part(e, rank()) : std::span<const std::byte>(e.received[p].bytes());
    const auto needed = static_cast<size_t>(needed_part(d, peer, rank(), size()).count);
    if (part.size() != needed * dtype_size(d.dtype)) {
      throw invalid_argument("rank ", peer, " has sent ", part.size(), " bytes instead of ",
                             needed * dtype_size(d.dtype));
    }
    from.push_back(part.data());
  }
  return from;
}

void ExchangeCommunicator::begin_gather(Moving& e) {
  const Descriptor& d = e.by_rank[0];
  const size_t element = dtype_size(d.dtype);
  e.result = Buffer::allocate(d.dtype, d.elements);
  auto* const whole = static_cast<std::byte*>(e.result->data());
  const auto place = [&](int r) {
    const Part slice = slice_of(d.elements, r, size());
    return std::span<std::byte>(whole + static_cast<size_t>(slice.begin) * element,
                                static_cast<size_t>(slice.count) * element);
  };
  const std::span<std::byte> own = place(rank());
  reduce_in_rank_order(d.dtype, d.reduction, sources(e), own.data(),
                       slice_of(d.elements, rank(), size()).count);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const auto p = static_cast<size_t>(peer);
    if (!place(peer).empty())
      e.transfers.push_back(
          {exchange_->receive(peer, tag_of(e.place[p], 1), place(peer), e.result), peer, false});
    if (own.empty()) continue;
    const uint64_t ours = e.place[static_cast<size_t>(rank())];
    e.transfers.push_back({exchange_->send(peer, tag_of(ours, 1), own, e.result), peer, true});
  }
}

bool ExchangeCommunicator::advance(Execution& execution) {
  auto& e = static_cast<Moving&>(execution);
  if (e.phase == 0) {
    begin_transfer(e);
    e.phase = 1;
  }
  if (!all_done(e)) return false;
  if (!is_split(e.by_rank[0], size())) {
    set_outputs(*e.collective, e.by_rank, sources(e));
    return true;
  }
  if (e.phase == 1) {
    begin_gather(e);
    e.phase = 2;
    if (!all_done(e)) return false;
  }
  set_outputs_over(*e.collective, e.result);
  return true;
}

bool ExchangeCommunicator::awaits(Execution& execution, int peer) {
  return std::ranges::any_of(static_cast<Moving&>(execution).transfers,
                             [&](Transfer& each) { return each.peer == peer && !is_over(each); });
}

void ExchangeCommunicator::finished(Execution& e) noexcept {
  ++finished_;
  for (int peer = 0; peer < size(); ++peer)
    brought_.erase({peer, e.place[static_cast<size_t>(peer)]});
}

// Where what comes from a peer wakes nobody, it is looked for while something is awaited, ever less
// often; else the thread sleeps until it is woken.
void ExchangeCommunicator::sleep(int milliseconds) {
  std::unique_lock lock(sleep_mutex_);
  const auto woken = [&] { return woken_; };
  if (milliseconds < 0) {
    awake_.wait(lock, woken);
  } else {
    awake_.wait_for(lock, notified_ ? std::chrono::milliseconds(milliseconds) : pause_, woken);
  }
  pause_ = woken_ || milliseconds < 0 ? kLeast : std::min(pause_ * 2, kMost);
  woken_ = false;
}

void ExchangeCommunicator::wake() noexcept {
  const std::lock_guard lock(sleep_mutex_);
  woken_ = true;
  awake_.notify_one();
}

void ExchangeCommunicator::leave() noexcept {
  Note note;
  note.leaves = 1;
  try {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) exchange_->send_note(peer, std::as_bytes(std::span(&note, 1)));
    }
    // The others' farewells are on the way: what is not received would be lost with a warning.
    const int64_t until = monotonic_ns() + kFarewellNs;
    while (exchange_->ends_together() &&
           std::count(left_.begin(), left_.end(), true) < size() - 1 && monotonic_ns() < until) {
      if (poll(true)) continue;
      const timespec moment{0, 1'000'000};
      ::nanosleep(&moment, nullptr);
    }
  } catch (const Error&) {  // the peer is gone
  }
  exchange_->close();
}

}  // namespace

ByteExchange::~ByteExchange() = default;

std::shared_ptr<Communicator> exchange_communicator(std::unique_ptr<ByteExchange> exchange,
                                                    int64_t timeout_ns) {
  return std::make_shared<ExchangeCommunicator>(std::move(exchange), timeout_ns);
}

}  // namespace treenail
