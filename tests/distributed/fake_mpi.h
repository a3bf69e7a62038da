// SPDX-License-Identifier: Apache-2.0
// MPI's calls for a world of one rank, whose messages go to itself: servers of one process take it
// for their ranks'. As with large messages of MPI a send is over when its bytes have been taken. A
// test can hold them back, or lose them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "framework/distributed/collectives/mpi_api.h"

namespace treenail::test {

class FakeMpi {
 public:
  static FakeMpi& instance() {
    static auto* const kFake = new FakeMpi;
    return *kFake;
  }
  static MpiPlace place() {
    MpiPlace place{};
    place.size = place.local_size = 1;
    place.tag_limit = 1 << 24;
    std::strcpy(place.version, "a fake");
    return place;
  }
  static const MpiApi& api() {
    static const MpiApi kApi = {
        {sizeof(MpiApi), ""}, nullptr, token_of, send, receive, test, cancel, probe, nullptr,
        [] { return 0; },     say};
    return kApi;
  }

  std::atomic<bool> held{false};     // nothing arrives
  std::atomic<bool> lost{false};     // what is sent is over, and never arrives
  std::atomic<bool> refuses{false};  // to send
  // Sends and receives that are not over.
  size_t under_way() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }
  std::atomic<int> sent{0};
  // All is as at first, and whoever used it has ended.
  void begin_anew() {
    const std::lock_guard lock(mutex_);
    requests_.clear();
    held = lost = refuses = false;
    sent = 0;
  }

 private:
  struct Request {
    bool sends;
    const void* from;
    void* to;
    int32_t count, tag;
    bool over, cancelled;
    int32_t received;
  };

  static void token_of(int32_t, uint8_t* token) { std::memset(token, 'x', kMpiTokenBytes); }
  static int32_t send(const void* bytes, int32_t count, int32_t, int32_t tag, uint64_t* ticket) {
    FakeMpi& self = instance();
    if (self.refuses) return 7;
    ++self.sent;
    return self.add({true, bytes, nullptr, count, tag, self.lost, false, 0}, ticket);
  }
  static int32_t receive(void* bytes, int32_t count, int32_t, int32_t tag, uint64_t* ticket) {
    return instance().add({false, nullptr, bytes, count, tag, false, false, 0}, ticket);
  }
  int32_t add(const Request& request, uint64_t* ticket) {
    const std::lock_guard lock(mutex_);
    requests_[*ticket = ++last_] = request;
    changed_ = true;
    return 0;
  }
  static int32_t test(uint64_t* ticket, int32_t* done, int32_t* received) {
    FakeMpi& self = instance();
    const std::lock_guard lock(self.mutex_);
    self.match();
    const auto at = self.requests_.find(*ticket);
    *done = at->second.over ? 1 : 0;
    if (*done == 0) return 0;
    if (received != nullptr) *received = at->second.received;
    self.requests_.erase(at);
    return 0;
  }
  static int32_t cancel(uint64_t* ticket) {
    FakeMpi& self = instance();
    const std::lock_guard lock(self.mutex_);
    self.requests_.at(*ticket).over = true;
    return 0;
  }
  static int32_t probe(int32_t, int32_t tag, int32_t* peer, int32_t* count) {
    FakeMpi& self = instance();
    const std::lock_guard lock(self.mutex_);
    *peer = -1;
    for (const auto& [number, request] : self.requests_) {
      if (!request.sends || request.over || request.tag != tag || self.held) continue;
      *peer = 0;
      *count = request.count;
      return 0;
    }
    return 0;
  }
  static void say(int32_t, char* text, int32_t) { std::strcpy(text, "the fake refuses"); }

  void match() {
    if (held || !std::exchange(changed_, false)) return;
    for (auto& [number, sent] : requests_) {
      if (!sent.sends || sent.over) continue;
      for (auto& [other, taken] : requests_) {
        if (taken.sends || taken.over || taken.tag != sent.tag) continue;
        std::memcpy(taken.to, sent.from, static_cast<size_t>(sent.count));
        taken.received = sent.count;
        taken.over = sent.over = true;
        break;
      }
    }
  }

  std::mutex mutex_;  // guards what follows
  std::map<uint64_t, Request> requests_;
  uint64_t last_ = 0;
  bool changed_ = false;  // since they were matched
};

}  // namespace treenail::test
