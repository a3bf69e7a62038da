// SPDX-License-Identifier: Apache-2.0
// What other ranks have sent to this one: notes, in the order in which each of them gave them, and
// parts of transfers, which go straight to where the receiver wants them if it has said so by then.
// Parts arrive on several threads, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/distributed/collectives/byte_exchange.h"
#include "framework/distributed/message.h"
#include "framework/distributed/protocol.h"
#include "framework/tensor/buffer.h"

namespace treenail {

class RankInbox {
 public:
  explicit RankInbox(int size) : senders_(static_cast<size_t>(size)) {}

  // As of ByteExchange::notify().
  void set_listener(ByteExchange::Listener* listener);
  void ring() const;

  // --- Of the rank's own thread ---

  // The next transfer of that peer and tag belongs there.
  void expect(uint64_t ticket, int peer, int tag, std::span<std::byte> bytes,
              IntrusivePtr<Buffer> memory);
  // Whether all of it is there. Errors: InvalidArgument where the sender has another size.
  bool done(uint64_t ticket);
  bool take_note(int* peer, std::vector<std::byte>* bytes);
  // Not before the notes that it gave.
  bool take_loss(int* peer, std::string* why);

  // --- Of any thread; `said.rank` is one of the group's ---

  // Errors: InvalidArgument.
  void part(const protocol::RankBytes& said, MessageBytes& bytes);
  void note(const protocol::RankBytes& said, MessageBytes& bytes);
  // Only the first is told for each peer.
  void lost(int peer, std::string why);

 private:
  using Line = std::tuple<uint64_t, uint64_t, uint64_t>;  // peer, tag, number
  struct Early {
    uint64_t offset;
    std::vector<std::byte> bytes;
  };
  struct Transfer {
    bool expected = false;
    std::span<std::byte> to;
    IntrusivePtr<Buffer> memory;  // of `to`
    uint64_t total = 0;           // as the sender says; 0: nothing has come
    uint64_t come = 0;
    std::vector<Early> early;
  };
  struct Sender {
    uint64_t next_note = 0;
    std::map<uint64_t, std::vector<std::byte>> notes;  // by number
    std::map<int, uint64_t> numbers;                   // by tag: of the next transfer
    bool lost = false;
    std::string why;
    bool told = false;
  };
  static void check_size(const Transfer& transfer);

  mutable std::mutex listener_mutex_;  // held while it is told
  ByteExchange::Listener* listener_ = nullptr;

  std::mutex mutex_;  // guards the rest
  std::vector<Sender> senders_;
  std::map<Line, Transfer> transfers_;
  std::map<uint64_t, Line> tickets_;
};

}  // namespace treenail
