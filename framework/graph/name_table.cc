// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/name_table.h"

#include <algorithm>
#include <utility>

#include "framework/base/hash.h"

namespace treenail {

uint64_t NameTable::key(std::string_view name) {
  char lower[64];
  uint64_t hash = name.size();
  for (; !name.empty(); name.remove_prefix(std::min(name.size(), sizeof lower))) {
    const std::string_view piece = name.substr(0, sizeof lower);
    std::transform(piece.begin(), piece.end(), lower, [](char c) {
      return static_cast<char>(c + (c >= 'A' && c <= 'Z' ? 'a' - 'A' : 0));
    });
    hash = hash_text({lower, piece.size()}, hash);
  }
  return hash;
}

void NameTable::add(uint64_t key, int32_t node) {
  if (4 * (used_ + 1) > 3 * entries_.size()) {
    const std::vector<Entry> old =
        std::exchange(entries_, std::vector<Entry>(std::max<size_t>(16, 2 * entries_.size())));
    for (const Entry& entry : old) {
      if (entry.suffix != 0) insert(entry);
    }
  }
  insert({key, 1, node});
  ++used_;
}

void NameTable::insert(const Entry& entry) {
  size_t i = place(entry.key);
  while (entries_[i].suffix != 0) i = next(i);
  entries_[i] = entry;
}

}  // namespace treenail
