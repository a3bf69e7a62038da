// SPDX-License-Identifier: Apache-2.0
// The segment in which ranks of one host tell each other what they ask for: per rank a ring of
// descriptors, which that rank writes and the others read. An entry is used again once all others
// have acknowledged it, which is the last that they do with it.
#pragma once

#include <atomic>
#include <cstdint>

#include "framework/distributed/collectives/collective.h"

namespace treenail {

inline constexpr uint64_t kSharedEntries = 512;

struct SharedEntry {
  std::atomic<uint32_t> acknowledged;  // by how many others
  std::atomic<uint32_t> phase;         // 1: this rank's slice is reduced
  Descriptor descriptor;
};

struct SharedRank {
  alignas(64) std::atomic<uint64_t> posted;  // how many entries so far
  alignas(64) std::atomic<uint32_t> asleep;  // 1: wake it when something changes
  alignas(64) SharedEntry entries[kSharedEntries];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace treenail
