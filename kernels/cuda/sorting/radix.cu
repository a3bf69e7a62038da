// SPDX-License-Identifier: Apache-2.0
// A stable radix sort of pairs. A tile is sorted in shared memory, four bits at a time: each thread
// counts its own neighbours, so that nothing hangs on the order in which threads run. Many tiles
// take three passes for eight bits: digits are counted, the counts summed over tiles, and each tile
// sorts itself and writes each digit's pairs to where they belong.
#include "kernels/cuda/language/scan.h"
#include "kernels/cuda/sorting/sort_space.h"

namespace treenail::gpu {

inline constexpr int kSplitBits = 4, kSplits = 1 << kSplitBits;

// Against neighbouring threads' elements all lying in one bank.
TN_DEVICE int padded(int i) { return i + i / 32; }
inline constexpr int kSpread = 32;

// A tile's shared memory. Each thread holds kEach neighbours.
template <class Key>
struct Tile {
  static constexpr int kPairs = kTilePairs<Key>, kEach = kPairs / kMostThreads;
  static constexpr int kSlots = kPairs + kPairs / kSpread;
  Key* keys;
  uint32_t* positions;
  uint16_t* counts;  // [kSplits, threads]
  uint32_t* part;    // two for each thread

  // Elements from n on come last, whatever is sorted by.
  TN_DEVICE void load(const Key* from_keys, const uint32_t* from_positions, int64_t first, int n) {
    for (int i = thread(); i < kPairs; i += threads()) {
      keys[padded(i)] = i < n ? from_keys[first + i] : ~Key(0);
      uint32_t position = static_cast<uint32_t>(first + i);
      if (from_positions != nullptr && i < n) position = from_positions[first + i];
      positions[padded(i)] = position;
    }
    sync();
  }

  TN_DEVICE void sort(int begin, int bits) {
    for (int shift = begin; shift < begin + bits; shift += kSplitBits) split(shift);
  }

 private:
  // Stable: by splits first, by threads then, and by a thread's order at last.
  TN_DEVICE void split(int shift) {
    Key key[kEach];
    uint32_t position[kEach];
    for (int s = 0; s < kSplits; ++s) counts[s * threads() + thread()] = 0;
    for (int i = 0; i < kEach; ++i) {
      key[i] = keys[padded(thread() * kEach + i)];
      position[i] = positions[padded(thread() * kEach + i)];
      ++counts[split_of(key[i], shift)];
    }
    sync();
    sum_counts();
    for (int i = 0; i < kEach; ++i) {
      const int place = padded(counts[split_of(key[i], shift)]++);
      keys[place] = key[i];
      positions[place] = position[i];
    }
    sync();
  }

  TN_DEVICE static int split_of(Key key, int shift) {
    return static_cast<int>(key >> shift & Key(kSplits - 1)) * threads() + thread();
  }

  // Each becomes the sum of those before it.
  TN_DEVICE void sum_counts() {
    uint16_t* const own = counts + thread() * kSplits;
    uint32_t sum = 0;
    for (int i = 0; i < kSplits; ++i) sum += own[i];
    uint32_t before = sum_before(part, sum).before;
    for (int i = 0; i < kSplits; ++i) {
      const uint32_t count = own[i];
      own[i] = static_cast<uint16_t>(before);
      before += count;
    }
    sync();
  }
};

#define TN_TILE(Key, tile)                                  \
  TN_SHARED(Key, tile_keys, Tile<Key>::kSlots);             \
  TN_SHARED(uint32_t, tile_positions, Tile<Key>::kSlots);   \
  TN_SHARED(uint16_t, split_counts, kSplits* kMostThreads); \
  TN_SHARED(uint32_t, part, 2 * kMostThreads);              \
  Tile<Key> tile = {tile_keys, tile_positions, split_counts, part}

// Where tile number `item` of all rows lies in its row, and how many pairs it has.
struct TilePlace {
  int64_t row, number, first;
  int n;
};
template <class Key>
TN_DEVICE TilePlace place_of(const SortSpace& s, int64_t item) {
  const int64_t number = item % s.tiles, first = number * kTilePairs<Key>;
  const int64_t left = s.n - first;
  return {item / s.tiles, number, first,
          static_cast<int>(left < kTilePairs<Key> ? left : kTilePairs<Key>)};
}

// Each tile by itself, of which the first s.kept pairs are written one tile's after the other's.
template <class Key>
TN_DEVICE void sort_tiles(const SortSpace& s, const Key* keys, const uint32_t* positions,
                          Key* to_keys, uint32_t* to_positions) {
  TN_TILE(Key, tile);
  const int64_t last = s.n - (s.tiles - 1) * kTilePairs<Key>;
  const int64_t row_kept = (s.tiles - 1) * s.kept + (last < s.kept ? last : s.kept);
  for (int64_t item = block(); item < s.rows * s.tiles; item += blocks()) {
    const TilePlace place = place_of<Key>(s, item);
    const int64_t row = place.row * s.n;
    tile.load(keys + row, positions == nullptr ? nullptr : positions + row, place.first, place.n);
    tile.sort(s.begin, s.bits);
    const int64_t at = place.row * row_kept + place.number * s.kept;
    for (int i = thread(); i < place.n && i < s.kept; i += threads()) {
      to_keys[at + i] = tile_keys[padded(i)];
      to_positions[at + i] = tile_positions[padded(i)];
    }
    sync();
  }
}

TN_DEVICE int digit_of(uint64_t key, int begin) {
  return static_cast<int>(key >> begin & uint64_t(kDigits - 1));
}

// counts [rows, kDigits, tiles]. The order in which threads count makes no difference.
template <class Key>
TN_DEVICE void count_digits(const SortSpace& s, const Key* keys, unsigned* counts) {
  TN_SHARED(unsigned, found, kDigits);
  for (int64_t item = block(); item < s.rows * s.tiles; item += blocks()) {
    const TilePlace place = place_of<Key>(s, item);
    const Key* const from = keys + place.row * s.n + place.first;
    for (int d = thread(); d < kDigits; d += threads()) found[d] = 0;
    sync();
    for (int i = thread(); i < place.n; i += threads())
      atomic_add(&found[digit_of(from[i], s.begin)], 1u);
    sync();
    for (int d = thread(); d < kDigits; d += threads())
      counts[(place.row * kDigits + d) * s.tiles + place.number] = found[d];
    sync();
  }
}

// A block for each row and digit: a count becomes the sum of those of the tiles before.
TN_KERNEL(sort_sum_counts, SortSpace s, unsigned* counts, unsigned* totals) {
  TN_SHARED(unsigned, part, 2 * kMostThreads);
  for (int64_t item = block(); item < s.rows * kDigits; item += blocks()) {
    unsigned* const row = counts + item * s.tiles;
    unsigned total = 0;
    for (int64_t first = 0; first < s.tiles; first += threads()) {
      const int64_t i = first + thread();
      const BlockScan<unsigned> sums = sum_before(part, i < s.tiles ? row[i] : 0u);
      if (i < s.tiles) row[i] = total + sums.before;
      total += sums.all;
    }
    if (thread() == 0) totals[item] = total;
  }
}

template <class Key>
TN_DEVICE void move_digits(const SortSpace& s, const Key* keys, const uint32_t* positions,
                           const unsigned* counts, const unsigned* totals, Key* to_keys,
                           uint32_t* to_positions) {
  TN_TILE(Key, tile);
  TN_SHARED(unsigned, begins, kDigits);  // in the result's row, less those in the tile
  static_assert(kDigits == kMostThreads, "a thread for each digit");
  for (int64_t item = block(); item < s.rows * s.tiles; item += blocks()) {
    const TilePlace place = place_of<Key>(s, item);
    const int64_t row = place.row * s.n, digit = place.row * kDigits + thread();
    tile.load(keys + row, positions == nullptr ? nullptr : positions + row, place.first, place.n);
    tile.sort(s.begin, kDigitBits);
    begins[thread()] =
        sum_before(part, totals[digit]).before + counts[digit * s.tiles + place.number];
    sync();
    for (int i = thread(); i < place.n; i += threads()) {
      const int own = digit_of(tile_keys[padded(i)], s.begin);
      const bool starts = i == 0 || digit_of(tile_keys[padded(i - 1)], s.begin) != own;
      if (starts) begins[own] -= static_cast<unsigned>(i);
    }
    sync();
    for (int i = thread(); i < place.n; i += threads()) {
      const Key key = tile_keys[padded(i)];
      const unsigned to = begins[digit_of(key, s.begin)] + static_cast<unsigned>(i);
      to_keys[row + to] = key;
      to_positions[row + to] = tile_positions[padded(i)];
    }
    sync();
  }
}

#define TN_RADIX(Key, name)                                                             \
  TN_KERNEL(sort_tiles_##name, SortSpace s, const Key* keys, const uint32_t* positions, \
            Key* to_keys, uint32_t* to_positions) {                                     \
    sort_tiles(s, keys, positions, to_keys, to_positions);                              \
  }                                                                                     \
  TN_KERNEL(sort_count_##name, SortSpace s, const Key* keys, unsigned* counts) {        \
    count_digits(s, keys, counts);                                                      \
  }                                                                                     \
  TN_KERNEL(sort_move_##name, SortSpace s, const Key* keys, const uint32_t* positions,  \
            const unsigned* counts, const unsigned* totals, Key* to_keys,               \
            uint32_t* to_positions) {                                                   \
    move_digits(s, keys, positions, counts, totals, to_keys, to_positions);             \
  }
TN_RADIX(uint32_t, uint32)
TN_RADIX(uint64_t, uint64)

}  // namespace treenail::gpu
