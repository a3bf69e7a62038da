// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/products/deep_product.h"

#include <algorithm>

namespace treenail::cpu {
namespace {

template <class T>
void multiply(const RunContext& c, const Product<T>& p, const DepthCut& cut, double cost,
              T* partial) {
  const int64_t elements = p.m * p.n;
  c.run_chunks(cut.pieces, cost, [&](int64_t i) {
    const int64_t k0 = i * cut.depth;
    Product<T> piece = p;
    piece.k = std::min(cut.depth, p.k - k0);
    piece.a += p.trans_a ? k0 * p.lda : k0;
    piece.b += p.trans_b ? k0 : k0 * p.ldb;
    piece.c = partial + i * elements;
    multiply_block(piece, 0, p.m, 0, p.n);
  });
  std::copy_n(partial, elements, p.c);
  for (int64_t i = 1; i < cut.pieces; ++i) {
    const T* const from = partial + i * elements;
    for (int64_t j = 0; j < elements; ++j) p.c[j] += from[j];
  }
}

}  // namespace

DepthCut::DepthCut(int64_t m, int64_t n, int64_t k) {
  // Few elements take the time of reading A and B. A piece is some 20 microseconds, and so deep
  // that adding the pieces up is nothing beside it.
  constexpr double kPieceWork = 1 << 20;
  constexpr int64_t kLeastDepth = 1024, kWholePasses = 512, kMostPieces = 16;
  const double rows = static_cast<double>(m), columns = static_cast<double>(n);
  const double work = static_cast<double>(k) * std::max(rows * columns, 4 * (rows + columns));
  const int64_t wanted = static_cast<int64_t>(std::min(work / kPieceWork, double{kMostPieces}));
  const int64_t most = std::max<int64_t>(1, std::min(wanted, k / kLeastDepth));
  // Whole passes of the general product, or its last one in each piece would be a short one.
  depth = ((k + most - 1) / most + kWholePasses - 1) / kWholePasses * kWholePasses;
  pieces = std::max<int64_t>(1, (k + depth - 1) / std::max<int64_t>(1, depth));
}

void multiply_deep(const RunContext& c, const Product<float>& p, const DepthCut& cut, double cost,
                   float* partial) {
  multiply(c, p, cut, cost, partial);
}
void multiply_deep(const RunContext& c, const Product<double>& p, const DepthCut& cut, double cost,
                   double* partial) {
  multiply(c, p, cut, cost, partial);
}

}  // namespace treenail::cpu
