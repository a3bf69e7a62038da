// SPDX-License-Identifier: Apache-2.0
// At a server, the elements of messages in parts: of requests until these are whole and made, of
// replies until they are fetched. They belong to who has begun them, have an order, and a limit for
// each caller; what nobody goes on with is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/spin.h"
#include "framework/distributed/long_message.h"

namespace treenail {

class LongMessages {
 public:
  using Clock = int64_t (*)();  // in ns
  // `most_bytes`: that one caller has here at a time.
  explicit LongMessages(int64_t most_bytes, Clock clock = monotonic_ns);
  LongMessages(const LongMessages&) = delete;
  LongMessages& operator=(const LongMessages&) = delete;

  // Errors of all: InvalidArgument for what is no message, or not the next part of one that the
  // caller has begun; ResourceExhausted.

  // A request with that head is to come.
  void begin(const std::string& caller, std::string_view head);
  void put(const std::string& caller, const protocol::Part& part, MessageBytes& bytes);
  // It has come; once.
  std::vector<Tensor> take(const std::string& caller, std::string_view head);

  // A reply is to be fetched by that token.
  void keep(const std::string& caller, const std::string& token, std::vector<Tensor> payload);
  std::vector<RpcSlice> get(const std::string& caller, const protocol::Part& part);

  void drop(const std::string& caller, const std::string& token);

 private:
  using Key = std::pair<std::string, std::string>;  // caller, token
  struct Entry;
  using Entries = std::map<Key, std::shared_ptr<Entry>>;

  void add(const Key& key, std::shared_ptr<Entry> made);
  std::shared_ptr<Entry> use(const Key& key, bool request);
  Entries take_unused();
  void remove(Entries::iterator at, Entries& gone);

  const uint64_t most_bytes_;
  const Clock clock_;
  std::mutex mutex_;  // guards what follows, but for the entry that somebody uses
  Entries entries_;
  std::map<std::string, uint64_t> held_;  // bytes, by caller
  int64_t looked_ = 0;                    // for what is unused
};

}  // namespace treenail
