// SPDX-License-Identifier: Apache-2.0
// Far ancestors by chains as in Jagadish, "A compression technique to materialize transitive
// closure", 1990, with a bounded number of chains: a node beside them is found through the first
// node of a chain that waits for it.
#include "framework/runtime/plan/ancestors.h"

#include <algorithm>
#include <numeric>

#include "framework/base/interrupt.h"

namespace treenail {

Ancestors::Ancestors(std::span<const Numbers> before)
    : words_(before.size() <= kAllKnown ? (before.size() + 63) / 64 : kNear / 64 + 1) {
  find_near(before);
  if (before.size() <= kAllKnown) return;
  find_chains(before);
  find_far(before);
}

void Ancestors::find_near(std::span<const Numbers> before) {
  near_.resize(before.size() * words_);
  for (size_t node = 0; node < before.size(); ++node) {
    poll_interrupt();
    uint64_t* row = &near_[node * words_];
    const size_t first = first_word(node);
    for (const int32_t earlier : before[node]) {
      const auto e = static_cast<size_t>(earlier);
      if (e / 64 < first) continue;
      row[e / 64 - first] |= uint64_t{1} << (e % 64);
      const size_t begin = first_word(e);
      for (size_t w = std::max(first, begin); w <= e / 64; ++w)
        row[w - first] |= near_[e * words_ + (w - begin)];
    }
  }
}

// Each node goes on with the longest chain that ends at one of those it waits for; the longest
// chains of all are kept.
void Ancestors::find_chains(std::span<const Numbers> before) {
  std::vector<int32_t> lengths;
  std::vector<bool> ends(before.size(), true);
  chain_.resize(before.size());
  for (size_t node = 0; node < before.size(); ++node) {
    int32_t longest = -1;
    for (const int32_t e : before[node]) {
      if (!ends[static_cast<size_t>(e)]) continue;
      if (longest < 0 || lengths[static_cast<size_t>(chain_[static_cast<size_t>(e)])] >
                             lengths[static_cast<size_t>(chain_[static_cast<size_t>(longest)])])
        longest = e;
    }
    if (longest >= 0) ends[static_cast<size_t>(longest)] = false;
    chain_[node] =
        longest >= 0 ? chain_[static_cast<size_t>(longest)] : static_cast<int32_t>(lengths.size());
    if (longest < 0) lengths.push_back(0);
    ++lengths[static_cast<size_t>(chain_[node])];
  }
  std::vector<size_t> by_length(lengths.size());
  std::iota(by_length.begin(), by_length.end(), size_t{0});
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  chains_ = std::min(kChains, by_length.size());
  std::vector<int32_t> kept(lengths.size(), -1);
  for (size_t i = 0; i < chains_; ++i) kept[by_length[i]] = static_cast<int32_t>(i);
  for (int32_t& chain : chain_) chain = kept[static_cast<size_t>(chain)];
}

void Ancestors::find_far(std::span<const Numbers> before) {
  reached_.assign(before.size() * chains_, -1);
  for (size_t node = 0; node < before.size(); ++node) {
    poll_interrupt();
    int32_t* row = &reached_[node * chains_];
    for (const int32_t earlier : before[node]) {
      const auto e = static_cast<size_t>(earlier);
      const int32_t* other = &reached_[e * chains_];
      for (size_t c = 0; c < chains_; ++c) row[c] = std::max(row[c], other[c]);
      if (chain_[e] >= 0) row[chain_[e]] = std::max(row[chain_[e]], earlier);
    }
  }
  exit_.assign(before.size(), -1);
  for (size_t node = before.size(); node-- > 0;) {
    if (chain_[node] >= 0) exit_[node] = static_cast<int32_t>(node);
    if (exit_[node] < 0) continue;
    for (const int32_t earlier : before[node]) {
      int32_t& exit = exit_[static_cast<size_t>(earlier)];
      if (exit < 0 || exit_[node] < exit) exit = exit_[node];
    }
  }
}

bool Ancestors::has(int32_t node, int32_t earlier) const {
  if (earlier >= node) return false;
  const auto n = static_cast<size_t>(node);
  const auto e = static_cast<size_t>(earlier);
  const size_t first = first_word(n);
  if (e / 64 >= first) return (near_[n * words_ + (e / 64 - first)] >> (e % 64)) & 1;
  const int32_t exit = exit_[e];
  if (exit < 0) return false;
  return reached_[n * chains_ + static_cast<size_t>(chain_[static_cast<size_t>(exit)])] >= exit;
}

size_t Ancestors::bytes() const {
  return near_.size() * sizeof(uint64_t) +
         (chain_.size() + reached_.size() + exit_.size()) * sizeof(int32_t);
}

}  // namespace treenail
