// SPDX-License-Identifier: Apache-2.0
// Which plan nodes are done before a node begins, in memory linear in the number of nodes. What is
// near is known exactly, what is far by way of the longest chains of the plan: an answer "yes" is
// certain, a "no" may mean that it is not known. In plans of up to kAllKnown nodes all is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/runtime/plan/numbers.h"

namespace treenail {

class Ancestors {
 public:
  static constexpr size_t kAllKnown = 8192;  // a bit per pair: 8 MiB
  static constexpr size_t kNear = 2048;      // beyond: 256 bytes a node for nodes this near
  static constexpr size_t kChains = 64;      // ... and a position on each of this many chains

  // `before`: for each node those it waits for, all of a lower number.
  explicit Ancestors(std::span<const Numbers> before);

  // Is `earlier` done before `node` begins? Sure where it says yes.
  bool has(int32_t node, int32_t earlier) const;

  size_t bytes() const;

 private:
  // The first word of bits that a node's row holds.
  size_t first_word(size_t node) const {
    const size_t words = node / 64 + 1;
    return words > words_ ? words - words_ : 0;
  }
  void find_near(std::span<const Numbers> before);
  void find_chains(std::span<const Numbers> before);
  void find_far(std::span<const Numbers> before);

  size_t words_;
  std::vector<uint64_t> near_;  // by node: words_ words, a bit per earlier node
  // Far ones. A chain is a path along edges, so that who follows a node of it follows all before.
  size_t chains_ = 0;
  std::vector<int32_t> chain_;    // by node: the chain it lies on, or -1
  std::vector<int32_t> reached_;  // by node and chain: the last node of it done before, or -1
  std::vector<int32_t> exit_;     // by node: the first node of a chain that it is, or that waits
                                  // for it, or -1
};

}  // namespace treenail
