// SPDX-License-Identifier: Apache-2.0
// The register tiles and the packing of panels behind micro_kernel.h.
#include "kernels/cpu/products/micro_kernel.h"

#include <algorithm>
#include <cstring>

namespace treenail::cpu {
namespace {

// Rows by Vectors vectors of type V. `tiles` of them below each other: what precedes a tile, and is
// the same for all, takes as long as the sums of a shallow one.
template <class V, int Rows, int Vectors, class T>
void tile(const MicroKernelCall<T>& t, int64_t tiles = 1, int64_t a_tile = 0,
          FetchAhead* ahead = nullptr) {
  constexpr int lanes = kLanesOf<V>;
  const int64_t a_row = t.a_row, a_step = t.a_step, ldb = t.ldb, ldc = t.ldc;
  const int64_t depth = t.depth, segments = t.segments, a_segment = t.a_segment;
  const bool add = t.add;
  const T* top = t.a;
  T* c = t.c;
  for (; tiles > 0; --tiles) {
    if (ahead != nullptr) ahead->some();
    V sum[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      __builtin_prefetch(c + i * ldc, 1);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sum[i][v] = V{};
    }
    const T *segment = top, *b = t.b;
    for (int64_t s = segments; s > 0; --s) {
      const T* a = segment;
      const auto step = [&]() __attribute__((always_inline)) {
        V row[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) row[v] = load<V>(b + v * lanes);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
          const V x = splat<V>(a[i * a_row]);
#pragma GCC unroll 8
          for (int v = 0; v < Vectors; ++v) sum[i][v] = mul_add(x, row[v], sum[i][v]);
        }
        a += a_step;
        b += ldb;
        // Else GCC computes the addresses of both steps apart, and spills.
        asm("" : "+r"(a), "+r"(b));
      };
      int64_t k = depth;
      for (; k >= 2; k -= 2) {
        step();
        step();
      }
      if (k > 0) step();
      segment += a_segment;
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        T* to = c + i * ldc + v * lanes;
        store(to, add ? load<V>(to) + sum[i][v] : sum[i][v]);
      }
    }
    top += a_tile;
    c += Rows * ldc;
  }
}

template <class V, int Vectors, class T, int Rows = Vectors == 1 ? 2 * kMicroRows : kMicroRows>
void whole_tile(int64_t rows, const MicroKernelCall<T>& t) {
  if (rows == Rows) {
    tile<V, Rows, Vectors>(t);
  } else if constexpr (Rows > 1) {
    whole_tile<V, Vectors, T, Rows - 1>(rows, t);
  }
}

// n < 2 * Width elements, as few moves as they take.
template <class T, int Width>
TN_INLINE void copy_some(const T* from, T* to, int64_t n) {
  if constexpr (Width > 0) {
    if (n & Width) {
      std::memcpy(to, from, Width * sizeof(T));
      from += Width;
      to += Width;
    }
    copy_some<T, Width / 2>(from, to, n);
  }
}

// A tile of which only some columns exist: computed whole, copied in part.
template <class V, int Vectors, class T>
void narrow_tile(int64_t rows, int64_t columns, MicroKernelCall<T> t) {
  constexpr int width = Vectors * kLanesOf<V>;
  constexpr int most_rows = Vectors == 1 ? 2 * kMicroRows : kMicroRows;
  T whole[most_rows * width];
  T* const c = t.c;
  const int64_t ldc = t.ldc;
  const bool add = t.add;
  t.c = whole;
  t.ldc = width;
  t.add = false;
  whole_tile<V, Vectors>(rows, t);
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = whole + i * width;
    T* to = c + i * ldc;
    if (add) {
      for (int64_t j = 0; j < columns; ++j) to[j] += from[j];
    } else {
      copy_some<T, width / 2>(from, to, columns);
    }
  }
}

template <class V, int Vectors, class T>
void tile_of(int64_t rows, int64_t columns, const MicroKernelCall<T>& t) {
  if (columns == Vectors * kLanesOf<V>) {
    whole_tile<V, Vectors>(rows, t);
  } else {
    narrow_tile<V, Vectors>(rows, columns, t);
  }
}

// By the fewest lanes that hold the columns.
template <class T>
void any_tile(int64_t rows, int64_t columns, const MicroKernelCall<T>& t) {
  if (columns > kLanes<T>) {
    tile_of<Vec<T>, kMicroVectors>(rows, columns, t);
  } else if (columns > kLanesOf<Vec256<T>>) {
    tile_of<Vec<T>, 1>(rows, columns, t);
  } else {
    tile_of<Vec256<T>, 1>(rows, columns, t);
  }
}

template <class T>
void tiles_below(int64_t rows, int64_t columns, int64_t a_tile, MicroKernelCall<T> t,
                 FetchAhead& ahead) {
  if (columns == kMicroColumns<T> && rows >= kMicroRows) {
    const int64_t whole = rows / kMicroRows;
    tile<Vec<T>, kMicroRows, kMicroVectors>(t, whole, a_tile, &ahead);
    t.a += whole * a_tile;
    t.c += whole * kMicroRows * t.ldc;
    rows -= whole * kMicroRows;
  }
  // Rows in place may form taller tiles where columns are few; packed ones come by kMicroRows.
  const int64_t together = a_tile == t.a_row * kMicroRows ? micro_rows<T>(columns) / kMicroRows : 1;
  for (; rows > 0; rows -= together * kMicroRows) {
    ahead.some();
    any_tile(std::min(together * kMicroRows, rows), columns, t);
    t.a += together * a_tile;
    t.c += together * kMicroRows * t.ldc;
  }
}

// Columns behind the last are never copied out of a tile: whatever lies there in B is taken along,
// but for the rows at whose end B may end.
template <class T>
void pack_narrow(const T* b, int64_t ldb, int64_t depth, int64_t columns, T* panel) {
  constexpr int lanes = kLanes<T>;
  constexpr int64_t width = kMicroColumns<T>;
  const int64_t whole = std::max<int64_t>(0, depth - (width - columns + ldb - 1) / ldb);
  for (int64_t k = 0; k < whole; ++k) {
    for (int v = 0; v < kMicroVectors; ++v) store(panel + v * lanes, load<Vec<T>>(b + v * lanes));
    b += ldb;
    panel += width;
  }
  for (int64_t k = whole; k < depth; ++k) {
    for (int64_t j = 0; j < width; ++j) panel[j] = j < columns ? b[j] : T(0);
    b += ldb;
    panel += width;
  }
}

template <class T>
void pack(const T* b, int64_t ldb, int64_t depth, int64_t columns, T* panels) {
  constexpr int lanes = kLanes<T>;
  constexpr int64_t width = kMicroColumns<T>;
  const int64_t whole = columns / width * width;
  for (int64_t k = 0; k < depth; ++k) {
    const T* from = b + k * ldb;
    T* to = panels + k * width;
    for (int64_t j = 0; j < whole; j += width) {
      for (int v = 0; v < kMicroVectors; ++v)
        store(to + v * lanes, load<Vec<T>>(from + j + v * lanes));
      to += depth * width;
    }
  }
  if (whole < columns) pack_narrow(b + whole, ldb, depth, columns - whole, panels + whole * depth);
}

// Squares of one vector's width are transposed in registers.
template <class T>
void pack_transposed(const T* b, int64_t ldb, int64_t depth, int64_t columns, T* panel) {
  constexpr int lanes = kLanes<T>;
  constexpr int64_t width = kMicroColumns<T>;
  for (int64_t j = 0; j < width; j += lanes) {
    int64_t k = 0;
    if (j + lanes <= columns) {
      for (; k + lanes <= depth; k += lanes) {
        Vec<T> square[lanes];
        for (int i = 0; i < lanes; ++i) square[i] = load<Vec<T>>(b + (j + i) * ldb + k);
        transpose<T>(square);
        for (int i = 0; i < lanes; ++i) store(panel + (k + i) * width + j, square[i]);
      }
    }
    for (; k < depth; ++k) {
      for (int64_t i = j; i < j + lanes; ++i)
        panel[k * width + i] = i < columns ? b[i * ldb + k] : T(0);
    }
  }
}

}  // namespace

void run_micro_kernel(int64_t rows, int64_t columns, const MicroKernelCall<float>& t) {
  any_tile(rows, columns, t);
}
void run_micro_kernel(int64_t rows, int64_t columns, const MicroKernelCall<double>& t) {
  any_tile(rows, columns, t);
}

void run_micro_kernels(int64_t rows, int64_t columns, int64_t a_tile,
                       const MicroKernelCall<float>& t, FetchAhead& ahead) {
  tiles_below(rows, columns, a_tile, t, ahead);
}
void run_micro_kernels(int64_t rows, int64_t columns, int64_t a_tile,
                       const MicroKernelCall<double>& t, FetchAhead& ahead) {
  tiles_below(rows, columns, a_tile, t, ahead);
}

void pack_panels(const float* b, int64_t ldb, int64_t depth, int64_t columns, float* panels) {
  pack(b, ldb, depth, columns, panels);
}
void pack_panels(const double* b, int64_t ldb, int64_t depth, int64_t columns, double* panels) {
  pack(b, ldb, depth, columns, panels);
}
void pack_panel_transposed(const float* b, int64_t ldb, int64_t depth, int64_t columns,
                           float* panel) {
  pack_transposed(b, ldb, depth, columns, panel);
}
void pack_panel_transposed(const double* b, int64_t ldb, int64_t depth, int64_t columns,
                           double* panel) {
  pack_transposed(b, ldb, depth, columns, panel);
}

}  // namespace treenail::cpu
