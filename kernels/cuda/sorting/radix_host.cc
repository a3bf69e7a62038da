// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sorting/radix_host.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/sorting/sort_space.h"

namespace treenail::cuda {
namespace {

using gpu::SortSpace;

constinit const GpuFunction kTiles32("sort_tiles_uint32"), kTiles64("sort_tiles_uint64"),
    kCount32("sort_count_uint32"), kCount64("sort_count_uint64"), kMove32("sort_move_uint32"),
    kMove64("sort_move_uint64"), kSumCounts("sort_sum_counts");

template <class Key>
class Sorter {
 public:
  Sorter(CudaDevice& device, int bits) : device_(device), bits_(bits) {}

  // By tiles alone, as long as each pass leaves half of them or less.
  SortedRows first(SortedRows rows, int64_t k) const {
    while (rows.keys.dim(1) > kTile && k <= kTile / 2) rows = sorted_tiles(rows, k);
    if (rows.keys.dim(1) > kTile) return sorted(std::move(rows));
    return sorted_tiles(rows, std::min(k, rows.keys.dim(1)));
  }

 private:
  static constexpr int64_t kTile = gpu::kTilePairs<Key>;
  static constexpr bool kWide = sizeof(Key) == 8;

  static SortSpace space_of(const Tensor& keys) {
    const int64_t n = keys.dim(1);
    return {keys.dim(0), n, (n + kTile - 1) / kTile, 0, 0, 0};
  }
  SortedRows rows_of(int64_t rows, int64_t n) const {
    const Shape shape({rows, n});
    return {Tensor(dtype_of<Key>, shape, &device_), Tensor(DType::kUInt32, shape, &device_)};
  }
  static const Key* keys_of(const Tensor& keys) { return keys.data<Key>(); }
  static const uint32_t* positions_of(const SortedRows& rows) {
    return rows.positions.defined() ? rows.positions.data<uint32_t>() : nullptr;
  }
  Grid grid_of(int64_t blocks) const {
    return {std::min(blocks, grid_for(device_, blocks * gpu::kMostThreads).blocks)};
  }

  SortedRows sorted_tiles(const SortedRows& from, int64_t kept) const {
    SortSpace s = space_of(from.keys);
    s.kept = kept;
    s.bits = bits_;
    const int64_t last = std::min(kept, s.n - (s.tiles - 1) * kTile);
    SortedRows to = rows_of(s.rows, (s.tiles - 1) * kept + last);
    (kWide ? kTiles64 : kTiles32)
        .launch(device_, grid_of(s.rows * s.tiles), s, keys_of(from.keys), positions_of(from),
                to.keys.data<Key>(), to.positions.data<uint32_t>());
    return to;
  }

  // One digit after the other, from one of two buffers to the other.
  SortedRows sorted(SortedRows rows) const {
    SortSpace s = space_of(rows.keys);
    Tensor counts(DType::kUInt32, Shape({s.rows, gpu::kDigits, s.tiles}), &device_);
    Tensor totals(DType::kUInt32, Shape({s.rows, gpu::kDigits}), &device_);
    SortedRows other = rows_of(s.rows, s.n);
    for (s.begin = 0; s.begin < bits_; s.begin += gpu::kDigitBits) {
      pass(s, rows, counts.data<uint32_t>(), totals.data<uint32_t>(), other);
      if (!rows.positions.defined())
        rows.positions = Tensor(DType::kUInt32, rows.keys.shape(), &device_);
      std::swap(rows, other);
    }
    return rows;
  }

  void pass(const SortSpace& s, const SortedRows& from, unsigned* counts, unsigned* totals,
            SortedRows& to) const {
    const Grid tiles = grid_of(s.rows * s.tiles);
    Grid digits = grid_of(s.rows * gpu::kDigits);
    digits.threads = lanes_for(s.tiles, 1);
    (kWide ? kCount64 : kCount32).launch(device_, tiles, s, keys_of(from.keys), counts);
    kSumCounts.launch(device_, digits, s, counts, totals);
    (kWide ? kMove64 : kMove32)
        .launch(device_, tiles, s, keys_of(from.keys), positions_of(from),
                static_cast<const unsigned*>(counts), static_cast<const unsigned*>(totals),
                to.keys.data<Key>(), to.positions.data<uint32_t>());
  }

  CudaDevice& device_;
  const int bits_;
};

}  // namespace

SortedRows sort_rows(CudaDevice& device, Tensor keys, int bits, int64_t k) {
  if (keys.dim(1) >= int64_t{1} << 32)
    throw unimplemented("a GPU sorts less than 4294967296 elements at once, got ", keys.dim(1));
  SortedRows rows{std::move(keys), Tensor()};
  const int used = std::max(bits, 1);
  if (rows.keys.dtype() == DType::kUInt64)
    return Sorter<uint64_t>(device, used).first(std::move(rows), k);
  return Sorter<uint32_t>(device, used).first(std::move(rows), k);
}

SortedRows sort_rows(CudaDevice& device, Tensor keys, int bits) {
  const int64_t n = keys.dim(1);
  return sort_rows(device, std::move(keys), bits, n);
}

}  // namespace treenail::cuda
