// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/planning/plan_needs.h"

#include <map>
#include <set>

#include "framework/base/error.h"

namespace treenail {
namespace {

class Finder {
 public:
  explicit Finder(const std::vector<PieceEnds>& pieces) : pieces_(pieces) {
    for (size_t p = 0; p < pieces.size(); ++p) {
      const PieceEnds& piece = pieces[p];
      const size_t ends = piece.fetches.size() + piece.targets.size() + piece.sends.size();
      if (piece.needs.ends.size() != ends)
        throw data_loss("a task told what ", piece.needs.ends.size(), " ends of its piece need, ",
                        "which has ", ends);
      for (size_t s = 0; s < piece.sends.size(); ++s) senders_[piece.sends[s]] = {p, s};
    }
  }

  // Of end `end` of piece `p`, with all that it waits for.
  EndNeeds needs(size_t p, size_t end) {
    std::set<size_t> feeds;
    std::set<std::pair<size_t, size_t>> sends;
    std::vector<std::pair<size_t, size_t>> todo{{p, end}};
    while (!todo.empty()) {
      const auto [piece_number, at] = todo.back();
      todo.pop_back();
      const PieceEnds& piece = pieces_[piece_number];
      for (const uint64_t feed : piece.needs.ends[at].feeds) {
        if (feed >= piece.feeds.size()) throw data_loss("a piece has no feed number ", feed);
        feeds.insert(piece.feeds[feed]);
      }
      for (const std::string& key : piece.needs.ends[at].received) {
        const auto sender = senders_.find(key);
        if (sender == senders_.end())
          throw data_loss("a piece waits for a value that none sends: ", key);
        const auto [from, send] = sender->second;
        const size_t target = pieces_[from].targets.size() + send;
        if (!sends.emplace(from, target).second) continue;
        todo.emplace_back(from, pieces_[from].fetches.size() + target);
      }
    }
    return {{feeds.begin(), feeds.end()}, {sends.begin(), sends.end()}};
  }

 private:
  const std::vector<PieceEnds>& pieces_;
  std::map<std::string, std::pair<size_t, size_t>> senders_;  // by key
};

}  // namespace

std::vector<EndNeeds> plan_needs(const std::vector<PieceEnds>& pieces, size_t num_fetches,
                                 size_t num_targets) {
  Finder finder(pieces);
  std::vector<EndNeeds> all(num_fetches + num_targets);
  for (size_t p = 0; p < pieces.size(); ++p) {
    const PieceEnds& piece = pieces[p];
    for (size_t i = 0; i < piece.fetches.size(); ++i) all.at(piece.fetches[i]) = finder.needs(p, i);
    for (size_t i = 0; i < piece.targets.size(); ++i)
      all.at(num_fetches + piece.targets[i]) = finder.needs(p, piece.fetches.size() + i);
  }
  return all;
}

}  // namespace treenail
