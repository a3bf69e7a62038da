// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/arena_pool.h"

#include <algorithm>

namespace treenail {

ArenaPool::~ArenaPool() {
  for (const Arena& arena : free_) release(arena);
}

Arena ArenaPool::take(size_t bytes, const std::byte* preferred) {
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(free_);
  asked_[next_++ % kRemembered] = bytes;
  // Free arenas are few: the one preferred, else the smallest that fits, else the largest.
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const bool fits = it->bytes >= bytes;
    if (fits && it->data == preferred) {
      best = it;
      break;
    }
    if (best == free_.end() ||
        (best->bytes >= bytes ? fits && it->bytes < best->bytes : it->bytes > best->bytes)) {
      best = it;
    }
  }
  Arena taken;
  if (best != free_.end()) {
    taken = *best;
    free_.erase(best);
    if (taken.bytes >= bytes) return taken;
    release(taken);
  }
  return make(bytes);
}

Arena ArenaPool::make(size_t bytes) {
  MemoryAccount* const account = MemoryAccount::current();
  if (account != nullptr) account->charge(bytes);
  try {
    return {static_cast<std::byte*>(device_.allocate(bytes)), bytes, account};
  } catch (...) {
    if (account != nullptr) account->discharge(bytes);
    throw;
  }
}

void ArenaPool::release(const Arena& arena) {
  device_.deallocate(arena.data, arena.bytes);
  if (arena.account != nullptr) arena.account->discharge(arena.bytes);
}

void ArenaPool::give_back(Arena arena) {
  if (arena.data == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(free_);
  const size_t most = *std::max_element(asked_.begin(), asked_.end());
  if (arena.bytes / 2 > most || free_.size() >= kMostFree) {
    release(arena);
  } else {
    free_.push_back(arena);
  }
}

void ArenaPool::clear() {
  std::vector<Arena> last;
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(free_);
  last.swap(free_);
  for (const Arena& arena : last) release(arena);
}

}  // namespace treenail
