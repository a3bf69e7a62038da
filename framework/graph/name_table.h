// SPDX-License-Identifier: Apache-2.0
// The names that a graph has used, without regard to case, and the nodes that bear them: a table of
// hashes, for a graph of a million nodes looks a name up in about one line of memory. Two names
// that hash alike cost one of them a suffix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace treenail {

class NameTable {
 public:
  static constexpr int32_t kNobody = -1;
  struct Entry {
    uint64_t key = 0;
    int32_t suffix = 0;  // the next to try for the name; 0: an empty place
    int32_t node = kNobody;
  };

  // The same for names that differ in the case of letters alone.
  static uint64_t key(std::string_view name);

  // The name's first entry, or null when it was never used. Valid until the next add().
  Entry* find(uint64_t key) {
    return const_cast<Entry*>(find_if(key, [](const Entry&) { return true; }));
  }
  // The first of its entries that `wanted` takes: nodes "x" and "X" have one each.
  template <class F>
  const Entry* find_if(uint64_t key, F&& wanted) const {
    if (entries_.empty()) return nullptr;
    for (size_t i = place(key); entries_[i].suffix != 0; i = next(i)) {
      if (entries_[i].key == key && wanted(entries_[i])) return &entries_[i];
    }
    return nullptr;
  }
  void add(uint64_t key, int32_t node = kNobody);

 private:
  size_t place(uint64_t key) const { return key & (entries_.size() - 1); }
  size_t next(size_t i) const { return (i + 1) & (entries_.size() - 1); }
  void insert(const Entry& entry);

  std::vector<Entry> entries_;  // a power of two, at most three quarters in use
  size_t used_ = 0;
};

}  // namespace treenail
