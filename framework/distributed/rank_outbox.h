// SPDX-License-Identifier: Apache-2.0
// What this rank sends to others: each transfer in parts, of which a few are under way to each peer
// at a time, so that both ends copy while bytes travel. A call that fails is the end of its peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "framework/distributed/protocol.h"
#include "framework/distributed/rank_inbox.h"
#include "framework/distributed/rpc.h"
#include "framework/tensor/buffer.h"

namespace treenail {

// Calls under way share it.
class RankOutbox : public std::enable_shared_from_this<RankOutbox> {
 public:
  // `peers[r]` is rank r, null of this one; `tokens` as they have said.
  RankOutbox(int rank, std::vector<std::unique_ptr<RpcPeer>> peers, std::vector<std::string> tokens,
             std::shared_ptr<RankInbox> inbox);

  void send(uint64_t ticket, int peer, int tag, std::span<const std::byte> bytes,
            IntrusivePtr<Buffer> memory);
  // Whether its peer has taken all of it; never, where the peer is lost.
  bool done(uint64_t ticket);
  void send_note(int peer, std::span<const std::byte> bytes);
  // Asks to be told when the peer leaves, or is lost.
  void watch();
  // Waits until what was sent is taken, until that time at most; asks no more.
  void finish(int64_t deadline_ns);

 private:
  struct Transfer {
    uint64_t ticket;
    int tag;
    uint64_t number;
    std::span<const std::byte> bytes;
    IntrusivePtr<Buffer> memory;
    size_t next = 0;   // what was not begun yet
    size_t taken = 0;  // by the peer
  };
  struct Part {
    int peer;
    std::shared_ptr<Transfer> transfer;
    size_t offset, size;
  };
  struct Line {
    std::deque<std::shared_ptr<Transfer>> waiting;  // not wholly begun
    int under_way = 0;
    uint64_t notes = 0;
    std::map<int, uint64_t> numbers;  // by tag: of the next transfer
    std::unique_ptr<RpcCalling> watch;
  };
  class PartSent;
  class NoteSent;
  class Watching;

  std::vector<Part> begin_parts(int peer);
  void start(const std::vector<Part>& parts);
  void taken(const Part& part);
  void failed(int peer, const std::exception_ptr& error);
  protocol::RankBytes head(int peer) const;

  const int rank_;
  const std::vector<std::unique_ptr<RpcPeer>> peers_;
  const std::vector<std::string> tokens_;
  const std::shared_ptr<RankInbox> inbox_;

  std::mutex mutex_;
  std::vector<Line> lines_;
  std::set<uint64_t> pending_;  // tickets
  int notes_under_way_ = 0;
};

}  // namespace treenail
