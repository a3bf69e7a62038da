// SPDX-License-Identifier: Apache-2.0
// Greedy by size: the largest blocks first, each at the lowest offset that no block alive at the
// same time covers. Close to optimal on training graphs, where few sizes dominate (Pisarchyk and
// Lee, "Efficient memory management for deep neural net inference", 2020, compare this family of
// heuristics). What is beyond the largest blocks of a very large plan takes buffers over from
// blocks of its size, so that neither time nor memory grows with the square of the plan.
#include "framework/runtime/plan/memory_plan.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/runtime/plan/ancestors.h"

namespace treenail {
namespace {

// Laid out exactly; beyond that many blocks only the largest are, for the search looks at pairs.
constexpr size_t kExactBlocks = 8192;
// Of the buffers that might be had again, so many of the newest and of the oldest are asked.
constexpr size_t kAskedBuffers = 16;
// A value with more users than this lives nearly as long as the run: its end is not looked for.
constexpr size_t kMostUsers = 1024;

constexpr size_t kPageBlocks = 64;
constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

class Planner {
 public:
  Planner(std::vector<MemoryBlock>& blocks, std::span<const Numbers> before, bool in_order)
      : blocks_(blocks),
        ancestors_(in_order ? std::span<const Numbers>() : before),
        in_order_(in_order) {
    last_.reserve(blocks.size());
    for (const MemoryBlock& block : blocks)
      last_.push_back(*std::max_element(block.users.begin(), block.users.end()));
  }

  int64_t run() {
    std::vector<size_t> by_size(blocks_.size());
    std::iota(by_size.begin(), by_size.end(), size_t{0});
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](size_t a, size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    const size_t exact = std::min(by_size.size(), kExactBlocks);
    for (size_t i = 0; i < exact; ++i) {
      poll_interrupt();
      place(by_size[i]);
    }
    std::sort(by_size.begin() + static_cast<std::ptrdiff_t>(exact), by_size.end(),
              [&](size_t a, size_t b) {
                return std::pair(blocks_[a].users[0], a) < std::pair(blocks_[b].users[0], b);
              });
    for (size_t i = exact; i < by_size.size(); ++i) {
      poll_interrupt();
      reuse(by_size[i]);
    }
    return arena_;
  }

 private:
  // All users of a are done before b is first written.
  bool ends_before(size_t a, size_t b) const {
    const int32_t writer = blocks_[b].users[0];
    if (last_[a] >= writer) return false;
    if (in_order_) return true;
    return blocks_[a].users.size() <= kMostUsers &&
           std::all_of(blocks_[a].users.begin(), blocks_[a].users.end(),
                       [&](int32_t user) { return ancestors_.has(writer, user); });
  }

  struct Placed {
    int64_t offset, end;
    int32_t writer, last;  // its life, in canonical order
    size_t block;
  };
  // Neighbours by offset, and what holds of all of them: most of a search goes from page to page.
  struct Page {
    std::vector<Placed> blocks;
    int64_t end = 0, widest_gap = 0;
    int32_t first_writer = 0, last_writer = 0, first_last = 0, last_last = 0;

    void sum_up() {
      *this = {std::move(blocks), 0, 0, kNever, 0, kNever, 0};
      for (const Placed& b : blocks) {
        if (&b != &blocks[0]) widest_gap = std::max(widest_gap, b.offset - end);
        end = std::max(end, b.end);
        first_writer = std::min(first_writer, b.writer);
        last_writer = std::max(last_writer, b.writer);
        first_last = std::min(first_last, b.last);
        last_last = std::max(last_last, b.last);
      }
    }
  };

  void place(size_t i) {
    blocks_[i].offset = lowest_offset(i);
    const Placed placed{blocks_[i].offset, blocks_[i].offset + blocks_[i].bytes,
                        blocks_[i].users[0], last_[i], i};
    arena_ = std::max(arena_, placed.end);
    const auto lower = [](int64_t offset, const Placed& b) { return offset < b.offset; };
    auto page =
        std::upper_bound(pages_.begin(), pages_.end(), placed.offset,
                         [&](int64_t offset, const Page& p) { return lower(offset, p.blocks[0]); });
    if (page != pages_.begin()) --page;
    if (pages_.empty()) page = pages_.emplace(page);
    auto& blocks = page->blocks;
    blocks.insert(std::upper_bound(blocks.begin(), blocks.end(), placed.offset, lower), placed);
    if (blocks.size() == kPageBlocks) {
      const auto middle = blocks.begin() + kPageBlocks / 2;
      Page upper{{middle, blocks.end()}};
      upper.sum_up();
      blocks.erase(middle, blocks.end());
      page = pages_.insert(page + 1, std::move(upper)) - 1;
    }
    page->sum_up();
  }

  int64_t lowest_offset(size_t i) const {
    const int32_t writer = blocks_[i].users[0];
    const int64_t bytes = blocks_[i].bytes;
    int64_t offset = 0;
    for (const Page& page : pages_) {  // by rising offset
      if (page.end <= offset) continue;
      if (in_order_ && (page.last_last < writer || last_[i] < page.first_writer)) continue;
      const bool all_alive = page.first_last >= writer && last_[i] >= page.last_writer;
      if (all_alive && page.widest_gap < bytes) {
        if (page.blocks[0].offset - offset >= bytes) return offset;
        offset = page.end;
        continue;
      }
      for (const Placed& other : page.blocks) {
        if (other.end <= offset || apart(other, i)) continue;
        if (other.offset - offset >= bytes) return offset;
        offset = other.end;
      }
    }
    return offset;
  }

  bool apart(const Placed& other, size_t i) const {
    if (other.last >= blocks_[i].users[0] && last_[i] >= other.writer) return false;
    return in_order_ || ends_before(other.block, i) || ends_before(i, other.block);
  }

  // Above what was placed: buffers of a few sizes, given on from value to value. Blocks come in the
  // order of their writers, so that a buffer's last value is the only one to ask: who came before
  // it had ended by then.
  void reuse(size_t i) {
    const int64_t wanted = size_class(blocks_[i].bytes);
    for (auto it = shelves_.lower_bound(wanted); it != shelves_.end() && it->first <= 2 * wanted;
         ++it) {
      if (!take(it->second, i)) continue;
      it->second.live.emplace(last_[i], i);
      return;
    }
    blocks_[i].offset = arena_;
    arena_ = added_bytes(arena_, wanted);
    shelves_[wanted].live.emplace(last_[i], i);
  }

  // Buffers of one size, by the block that had each last.
  struct Shelf {
    std::priority_queue<std::pair<int32_t, size_t>, std::vector<std::pair<int32_t, size_t>>,
                        std::greater<>>
        live;                 // the first to end in canonical order on top
    std::deque<size_t> over;  // in canonical order: no user is left
  };

  bool take(Shelf& shelf, size_t i) {
    while (!shelf.live.empty() && shelf.live.top().first < blocks_[i].users[0]) {
      shelf.over.push_back(shelf.live.top().second);
      shelf.live.pop();
    }
    const size_t count = shelf.over.size();
    for (size_t k = 0; k < std::min(count, 2 * kAskedBuffers); ++k) {
      const size_t at = k < kAskedBuffers ? count - 1 - k : k - kAskedBuffers;
      if (!ends_before(shelf.over[at], i)) continue;
      blocks_[i].offset = blocks_[shelf.over[at]].offset;
      shelf.over.erase(shelf.over.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    return false;
  }

  // Eight sizes to a doubling.
  static int64_t size_class(int64_t bytes) {
    const auto step = std::max<int64_t>(
        kArenaAlignment, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)) / 8));
    return bytes > std::numeric_limits<int64_t>::max() - step ? bytes
                                                              : (bytes + step - 1) / step * step;
  }

  std::vector<MemoryBlock>& blocks_;
  Ancestors ancestors_;
  bool in_order_;
  std::vector<int32_t> last_;
  std::vector<Page> pages_;           // of placed blocks, by offset
  std::map<int64_t, Shelf> shelves_;  // by size
  int64_t arena_ = 0;
};

}  // namespace

int64_t added_bytes(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  throw resource_exhausted("the values of this run need more than 2^63 - 1 bytes");
}

int64_t plan_memory(std::vector<MemoryBlock>& blocks, std::span<const Numbers> before,
                    bool in_order) {
  int64_t sum = 0;  // no offset lies beyond it
  for (MemoryBlock& block : blocks) {
    block.bytes = added_bytes(block.bytes, kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    sum = added_bytes(sum, block.bytes);
  }
  return Planner(blocks, before, in_order).run();
}

}  // namespace treenail
