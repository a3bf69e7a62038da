// SPDX-License-Identifier: Apache-2.0
// Which feeds, fetches and targets of a run in parts have been named in its parts so far: each may
// be once. For runs of this process and at servers alike.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/runtime/run/session.h"

namespace treenail {

class PartNames {
 public:
  PartNames(const Graph& graph, const Session::Signature& signature);

  // Positions in the signature, in the order in which a part names them.
  struct Request {
    std::vector<size_t> feeds, fetches, targets;
    size_t size() const { return feeds.size() + fetches.size() + targets.size(); }
  };
  // Notes nothing. Errors: InvalidArgument for what the set-up did not name or a part has named; as
  // check_feed().
  Request request_of(const Session::Part& part) const;

  bool fed(size_t feed) const { return fed_[feed]; }
  void note_fed(size_t feed) { fed_[feed] = true; }
  void note_done(const Request& request);
  // How many are still to be named.
  size_t left() const;

  // Errors: InvalidArgument, always: `what` needs a feed that has not come.
  [[noreturn]] void refuse_fetch(size_t fetch, size_t missing_feed) const;
  [[noreturn]] void refuse_target(size_t target, size_t missing_feed) const;

 private:
  using Places = std::unordered_map<int64_t, size_t>;

  const Graph& graph_;
  const Session::Signature& signature_;
  std::vector<bool> fed_, fetched_, ran_;  // by position in the signature
  Places feeds_, fetches_, targets_;       // filled with the vectors before
};

// Errors: InvalidArgument, always.
[[noreturn]] void throw_no_partial_run(const std::string& handle);

}  // namespace treenail
