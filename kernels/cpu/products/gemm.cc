// SPDX-License-Identifier: Apache-2.0
// The matrix product behind gemm.h. Panels of B, kDepth rows by one register tile's columns each,
// are packed into a stack buffer, several at a time so that B is read in longer runs; each then
// stays in L1 and meets every row tile of A. A is read in place by rows; a transposed A is packed
// by blocks of rows. Each pass over kDepth sums from zero and then adds to C: rounding error grows
// with kDepth + k / kDepth instead of k. Few rows read B in place (it is read once), one row or one
// column is a matrix-vector product (gemv.h), a few long ones are dot products (thin_product.h).
#include "kernels/cpu/products/gemm.h"

#include <algorithm>

#include "kernels/cpu/products/gemv.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/products/thin_product.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {
namespace {

constexpr int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

constexpr int64_t kDepth = 256;
// Panels packed together: 64 KiB at most.
constexpr int64_t kGroupPanels =
    std::min<int64_t>(4, (64 << 10) / (kDepth * kMicroColumns<float> * int64_t{sizeof(float)}));
// A packed block of A: in L2, and on the stack. As many rows as fit, the fewer the deeper.
template <class T>
constexpr int64_t kPackedElements = (192 << 10) / sizeof(T);

// A B no larger is read in place: it shares L1 with what else a tile needs.
template <class T>
constexpr int64_t kInPlaceElements = (16 << 10) / sizeof(T);

// A stored [k, rows] → panels [rows / kMicroRows][k][kMicroRows]; rows behind the last one are not
// read later. Rows of A are read in order; a vector written spills over into the panel's next k,
// which is written afterwards.
template <class T>
void pack_a(const T* a, int64_t lda, int64_t depth, int64_t rows, T* packed) {
  constexpr int vectors = (kMicroRows + kLanes<T> - 1) / kLanes<T>;
  constexpr int64_t reach = vectors * kLanes<T>;
  for (int64_t k = 0; k < depth; ++k) {
    const T* from = a + k * lda;
    T* to = packed + k * kMicroRows;
    int64_t i = 0;
    if (k + (reach + kMicroRows - 1) / kMicroRows <= depth) {
      for (; i + reach <= rows; i += kMicroRows) {
        for (int v = 0; v < vectors; ++v)
          store(to + v * kLanes<T>, load<Vec<T>>(from + i + v * kLanes<T>));
        to += kMicroRows * depth;
      }
    }
    for (; i < rows; i += kMicroRows) {
      for (int64_t r = 0; r < std::min<int64_t>(kMicroRows, rows - i); ++r) to[r] = from[i + r];
      to += kMicroRows * depth;
    }
  }
}

// Where the rows of A of one pass lie: element (i, k) of tile t at first[t * tile + i * row + k *
// step].
template <class T>
struct RowsOfA {
  const T* first;
  int64_t tile, row, step;
};

template <class T>
class BlockProduct {
 public:
  BlockProduct(const Product<T>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1)
      : p_(p), m0_(m0), m1_(m1), n0_(n0), n1_(n1) {}

  void run() {
    if (m0_ == m1_ || n0_ == n1_) return;
    if (p_.trans_a && n1_ - n0_ > 2 * kMicroColumns<T>) {
      run_packed_a();
      return;
    }
    // Rows of A are contiguous, or met by few panels of B only: read in place.
    const int64_t row = p_.trans_a ? 1 : p_.lda, step = p_.trans_a ? p_.lda : 1;
    for (int64_t k0 = 0; k0 < p_.k; k0 += kDepth) {
      columns(k0, m0_, m1_, {p_.a + m0_ * row + k0 * step, row * kMicroRows, row, step});
    }
  }

 private:
  // The next panels of B, while so many tiles are computed.
  FetchAhead next_panels(int64_t k0, int64_t j, int64_t end, int64_t depth, int64_t tiles) const {
    if (j >= end || depth == 0) return {};
    const int64_t rows = p_.trans_b ? end - j : depth, length = p_.trans_b ? depth : end - j;
    return {p_.trans_b ? p_.b + j * p_.ldb + k0 : p_.b + k0 * p_.ldb + j, rows,
            length * int64_t{sizeof(T)}, p_.ldb * int64_t{sizeof(T)}, tiles};
  }

  // The rows of a transposed A that are packed next.
  FetchAhead next_rows(int64_t k0, int64_t row, int64_t rows, int64_t tiles) const {
    if (k0 >= p_.k) return {};
    return {p_.a + k0 * p_.lda + row, std::min(kDepth, p_.k - k0), rows * int64_t{sizeof(T)},
            p_.lda * int64_t{sizeof(T)}, tiles};
  }

  void run_packed_a() {
    alignas(64) T packed[kPackedElements<T>];
    for (int64_t k0 = 0; k0 < p_.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, p_.k - k0);
      const int64_t most = kPackedElements<T> / depth / kMicroRows * kMicroRows;
      for (int64_t i = m0_; i < m1_; i += most) {
        const int64_t rows = std::min(most, m1_ - i);
        const int64_t tiles = (rows + kMicroRows - 1) / kMicroRows *
                              ((n1_ - n0_ + kMicroColumns<T> - 1) / kMicroColumns<T>);
        next_a_ = i + rows < m1_ ? next_rows(k0, i + rows, std::min(most, m1_ - i - rows), tiles)
                                 : next_rows(k0 + kDepth, m0_, std::min(most, m1_ - m0_), tiles);
        pack_a(p_.a + k0 * p_.lda + i, p_.lda, depth, rows, packed);
        columns(k0, i, i + rows, {packed, kMicroRows * depth, 1, kMicroRows});
      }
    }
  }

  // Rows [row0, row1), all columns, of the pass at k0.
  void columns(int64_t k0, int64_t row0, int64_t row1, const RowsOfA<T>& a) {
    if (p_.packed_b != nullptr) {
      columns_of_packed(k0, row0, row1, a);
    } else {
      columns_as_stored(k0, row0, row1, a);
    }
  }

  // The tiles at C[row0, j] in the pass at k0, with their panel of B.
  MicroKernelCall<T> tiles_at(int64_t k0, int64_t row0, int64_t j, const RowsOfA<T>& a, const T* b,
                              int64_t ldb) const {
    return {std::min(kDepth, p_.k - k0), a.first, a.row, a.step, b, ldb, p_.c_at(row0, j), p_.ldc,
            p_.add_to_c || k0 > 0};
  }

  // Panels follow each other in memory, which hardware fetches ahead; rows of A it does not.
  void columns_of_packed(int64_t k0, int64_t row0, int64_t row1, const RowsOfA<T>& a) {
    constexpr int64_t width = kMicroColumns<T>;
    const int64_t depth = std::min(kDepth, p_.k - k0);
    const T* const pass = p_.packed_b + k0 * round_up(p_.n, width);
    for (int64_t j = n0_; j < n1_; j += width) {
      run_micro_kernels(row1 - row0, std::min(width, n1_ - j), a.tile,
                        tiles_at(k0, row0, j, a, pass + j * depth, width), next_a_);
    }
  }

  void columns_as_stored(int64_t k0, int64_t row0, int64_t row1, const RowsOfA<T>& a) {
    constexpr int64_t width = kMicroColumns<T>;
    alignas(64) T panels[kGroupPanels * kDepth * width];
    const int64_t depth = std::min(kDepth, p_.k - k0);
    const int64_t tiles = (row1 - row0 + kMicroRows - 1) / kMicroRows;
    // One tile reads a panel once, and a small B stays in L1 as it is: packing would cost more than
    // it saves.
    const bool small = p_.k * p_.ldb <= kInPlaceElements<T>;
    const bool in_place = (tiles == 1 || small) && !p_.trans_b;
    const int64_t group = p_.trans_b ? width : kGroupPanels * width;
    for (int64_t j0 = n0_; j0 < n1_; j0 += group) {
      const int64_t end = std::min(n1_, j0 + group);
      if (p_.trans_b) {
        pack_panel_transposed(p_.b + j0 * p_.ldb + k0, p_.ldb, depth, end - j0, panels);
      } else if (!in_place) {
        pack_panels(p_.b + k0 * p_.ldb + j0, p_.ldb, depth, end - j0, panels);
      } else if ((end - j0) % width != 0) {
        const int64_t whole = (end - j0) / width * width;
        pack_panels(p_.b + k0 * p_.ldb + j0 + whole, p_.ldb, depth, end - j0 - whole,
                    panels + whole * depth);
      }
      const int64_t tiles_of_group = tiles * ((end - j0 + width - 1) / width);
      FetchAhead ahead =
          end < n1_
              ? next_panels(k0, end, std::min(n1_, end + group), depth, tiles_of_group)
              : next_panels(k0 + kDepth, n0_, std::min(n1_, n0_ + group),
                            std::clamp<int64_t>(p_.k - k0 - kDepth, 0, kDepth), tiles_of_group);
      ahead.also = &next_a_;
      for (int64_t j = j0; j < end; j += width) {
        const int64_t count = std::min(width, end - j);
        const bool direct = in_place && count == width;
        const T* b = direct ? p_.b + k0 * p_.ldb + j : panels + (j - j0) * depth;
        run_micro_kernels(row1 - row0, count, a.tile,
                          tiles_at(k0, row0, j, a, b, direct ? p_.ldb : width), ahead);
      }
    }
  }

  FetchAhead next_a_;
  const Product<T>& p_;
  const int64_t m0_, m1_, n0_, n1_;
};

template <class T>
void multiply(const Product<T>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  if (p.k == 0) {
    for (int64_t i = m0; i < m1 && !p.add_to_c; ++i) std::fill_n(p.c_at(i, n0), n1 - n0, T(0));
  } else if (is_thin(p)) {
    multiply_thin(p, m0, m1, n0, n1);
  } else if (p.m == 1 && (!p.trans_a || p.lda == 1)) {
    Product<T> t = p;
    if (p.n == 1 && p.ldb == 1) {  // one column is stored as one row: a dot product
      t.trans_b = true;
      t.ldb = p.k;
    }
    multiply_row(t, n0, n1);
  } else if (p.n == 1 && p.ldc == 1 && (p.trans_b || p.ldb == 1)) {
    // One column: the transposed product has one row.
    Product<T> t = p;
    t.m = 1;
    t.n = p.m;
    t.trans_a = false;
    t.a = p.b;
    t.lda = p.k;
    t.b = p.a;
    t.ldb = p.lda;
    t.trans_b = !p.trans_a;
    multiply_row(t, m0, m1);
  } else {
    BlockProduct<T>(p, m0, m1, n0, n1).run();
  }
}

template <class T>
void pack_columns(const Product<T>& p, int64_t n0, int64_t n1, T* packed) {
  constexpr int64_t width = kMicroColumns<T>;
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, p.k - k0);
    T* const pass = packed + k0 * round_up(p.n, width);
    if (!p.trans_b) {
      pack_panels(p.b + k0 * p.ldb + n0, p.ldb, depth, n1 - n0, pass + n0 * depth);
      continue;
    }
    for (int64_t j = n0; j < n1; j += width) {
      pack_panel_transposed(p.b + j * p.ldb + k0, p.ldb, depth, std::min(width, n1 - j),
                            pass + j * depth);
    }
  }
}

}  // namespace

int64_t packed_b_elements(int64_t n, int64_t k) { return round_up(n, kMicroColumns<float>) * k; }

void pack_b(const Product<float>& p, int64_t n0, int64_t n1, float* packed) {
  pack_columns(p, n0, n1, packed);
}
void pack_b(const Product<double>& p, int64_t n0, int64_t n1, double* packed) {
  pack_columns(p, n0, n1, packed);
}

void multiply_block(const Product<float>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  multiply(p, m0, m1, n0, n1);
}

void multiply_block(const Product<double>& p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  multiply(p, m0, m1, n0, n1);
}

// One row: bound by reading B, some 5 microseconds a block, wherever it is cut.
BlockCut cut_row(int64_t n, int64_t k) {
  constexpr int64_t kBlockElements = 1 << 17;
  constexpr int64_t kColumns = 8 * kLanes<float>;  // that multiply_row keeps in registers
  const int64_t wanted = std::max<int64_t>(1, n / kColumns * kColumns * k / kBlockElements);
  const int64_t columns = std::max(kColumns, round_up((n + wanted - 1) / wanted, kColumns));
  if (columns >= n) return {1, std::max<int64_t>(n, 1), 1, 1};
  return {1, columns, 1, (n + columns - 1) / columns};
}

BlockCut cut_product(int64_t m, int64_t n, int64_t k, bool trans_a) {
  if (m == 1) return cut_row(n, k);
  // A block of about this many multiply-adds is worth handing to another thread (some 20
  // microseconds).
  const double block_work = trans_a ? 2 << 20 : 1 << 20;
  constexpr int64_t kMaxBlocks = 64;
  BlockCut cut{std::max<int64_t>(m, 1), std::max<int64_t>(n, 1), 1, 1};
  const double work = static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(std::max<int64_t>(k, 1));
  const int64_t wanted =
      static_cast<int64_t>(std::clamp(work / block_work, 1.0, double{kMaxBlocks}));
  if (wanted == 1) return cut;
  // Every block of rows packs B anew, so rows are cut into few blocks of many rows, and columns
  // take what remains, but no fewer than are packed together. A transposed A is packed anew for
  // every block of columns.
  const int64_t rows_at_least = trans_a ? 192 : 384;
  const int64_t columns_at_least = (trans_a ? 4 : 1) * kGroupPanels * kMicroColumns<float>;
  if (m >= 2 * rows_at_least) {
    const int64_t row_blocks = std::min(wanted, (m + rows_at_least - 1) / rows_at_least);
    cut.rows = round_up((m + row_blocks - 1) / row_blocks, kMicroRows);
    cut.row_blocks = (m + cut.rows - 1) / cut.rows;
  }
  const int64_t columns_wanted = (wanted + cut.row_blocks - 1) / cut.row_blocks;
  if (columns_wanted > 1) {
    cut.columns = round_up(std::max((n + columns_wanted - 1) / columns_wanted, columns_at_least),
                           kMicroColumns<float>);
    cut.column_blocks = std::max<int64_t>(1, (n + cut.columns - 1) / cut.columns);
  }
  return cut;
}

}  // namespace treenail::cpu
