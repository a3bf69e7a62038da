// SPDX-License-Identifier: Apache-2.0
// A ByteExchange between threads of this process: transfers end late and out of step, as a seeded
// generator has it. A rank that the test says is lost is noticed after the first note has come.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <tuple>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/collectives/byte_exchange.h"

namespace treenail::test {

class Post {
 public:
  using Line = std::tuple<int, int, int>;  // from, to, tag
  std::mutex mutex;
  std::map<Line, std::deque<std::vector<std::byte>>> sent;
  std::map<Line, const std::byte*> from;  // where what was sent last lay
  std::atomic<int> lost{-1};
};

class Mail final : public ByteExchange {
 public:
  Mail(std::shared_ptr<Post> post, int rank, int size)
      : ByteExchange(rank, size), post_(std::move(post)), random_(static_cast<unsigned>(rank)) {}
  const char* name() const override { return "mail"; }

  Ticket send(int peer, int tag, std::span<const std::byte> bytes,
              const IntrusivePtr<Buffer>& /*memory*/) override {
    const std::lock_guard lock(post_->mutex);
    post_->sent[{rank(), peer, tag}].emplace_back(bytes.begin(), bytes.end());
    post_->from[{rank(), peer, tag}] = bytes.data();
    return ++last_;
  }
  Ticket receive(int peer, int tag, std::span<std::byte> bytes,
                 const IntrusivePtr<Buffer>& /*memory*/) override {
    awaited_[++last_] = {{peer, rank(), tag}, bytes};
    return last_;
  }
  bool done(Ticket& ticket) override {
    if (random_() % 3 == 0) return false;
    const auto found = awaited_.find(ticket);
    if (found == awaited_.end()) return true;
    const std::lock_guard lock(post_->mutex);
    auto& line = post_->sent[found->second.first];
    if (line.empty()) return false;
    const std::span<std::byte> to = found->second.second;
    if (line.front().size() != to.size()) throw internal_error("sizes differ");
    std::memcpy(to.data(), line.front().data(), to.size());
    line.pop_front();
    awaited_.erase(found);
    return true;
  }
  void send_note(int peer, std::span<const std::byte> bytes) override { send(peer, 0, bytes, {}); }
  bool take_note(int* peer, std::vector<std::byte>* bytes) override {
    const std::lock_guard lock(post_->mutex);
    const int first = static_cast<int>(random_() % static_cast<unsigned>(size()));
    for (int i = 0; i < size(); ++i) {
      *peer = (first + i) % size();
      auto& line = post_->sent[{*peer, rank(), 0}];
      if (line.empty() || random_() % 4 == 0) continue;
      *bytes = std::move(line.front());
      line.pop_front();
      return heard_ = true;
    }
    return false;
  }
  bool take_loss(int* peer, std::string* why) override {
    *peer = post_->lost.load();
    if (!heard_ || noticed_ || *peer < 0 || *peer == rank()) return false;
    *why = concat("lost rank ", *peer);
    return noticed_ = true;
  }
  void close() noexcept override {}

 private:
  const std::shared_ptr<Post> post_;
  std::mt19937 random_;
  std::map<Ticket, std::pair<Post::Line, std::span<std::byte>>> awaited_;
  Ticket last_ = 0;
  bool heard_ = false, noticed_ = false;  // a note; the loss
};

}  // namespace treenail::test
