// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rank_exchange.h"

#include <utility>

#include "framework/base/spin.h"

namespace treenail {
namespace {

// For the last notes, to peers that are slow.
constexpr int64_t kFarewellNs = 5'000'000'000;

}  // namespace

RankExchange::RankExchange(int rank, int size, Parts parts)
    : ByteExchange(rank, size), parts_(std::move(parts)) {}

RankExchange::~RankExchange() {
  if (of_parent()) {  // its threads and locks are not here
    static_cast<void>(new Parts(std::move(parts_)));
    return;
  }
  notify(nullptr);
  close();
}

ByteExchange::Ticket RankExchange::send(int peer, int tag, std::span<const std::byte> bytes,
                                        const IntrusivePtr<Buffer>& memory) {
  parts_.outbox->send(++last_, peer, tag, bytes, memory);
  return last_;
}

ByteExchange::Ticket RankExchange::receive(int peer, int tag, std::span<std::byte> bytes,
                                           const IntrusivePtr<Buffer>& memory) {
  parts_.inbox->expect(++last_, peer, tag, bytes, memory);
  return last_;
}

// A ticket is one of the two's, and nothing to the other.
bool RankExchange::done(Ticket& ticket) {
  return parts_.outbox->done(ticket) && parts_.inbox->done(ticket);
}

void RankExchange::send_note(int peer, std::span<const std::byte> bytes) {
  parts_.outbox->send_note(peer, bytes);
}

bool RankExchange::take_note(int* peer, std::vector<std::byte>* bytes) {
  return parts_.inbox->take_note(peer, bytes);
}

bool RankExchange::take_loss(int* peer, std::string* why) {
  return parts_.inbox->take_loss(peer, why);
}

bool RankExchange::notify(Listener* listener) {
  if (!of_parent()) parts_.inbox->set_listener(listener);
  return true;
}

void RankExchange::close() noexcept {
  if (of_parent() || parts_.listener == nullptr) return;
  parts_.outbox->finish(monotonic_ns() + kFarewellNs);
  parts_.service->say_farewell();
  parts_.listener.reset();
}

}  // namespace treenail
