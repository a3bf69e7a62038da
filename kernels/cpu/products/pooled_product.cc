// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/products/pooled_product.h"

#include <algorithm>
#include <array>

namespace treenail::cpu {
namespace {

template <class T>
void multiply_one(const PooledProduct& how, const Product<T>& p, int64_t block) {
  const BlockCut& cut = how.cut;
  const int64_t m0 = block / cut.column_blocks * cut.rows;
  const int64_t n0 = block % cut.column_blocks * cut.columns;
  const int64_t m1 = std::min(p.m, m0 + cut.rows), n1 = std::min(p.n, n0 + cut.columns);
  if (how.api != nullptr) {
    blas_block(*how.api, p, m0, m1, n0, n1);
  } else {
    multiply_block(p, m0, m1, n0, n1);
  }
}

template <class T>
void multiply_all(const RunContext& c, std::span<const Product<T>> products) {
  constexpr size_t kMost = 4;
  std::array<PooledProduct, kMost> how;
  std::array<int64_t, kMost + 1> first = {};
  double cost = 0;
  const BlasApi* api = nullptr;
  for (size_t i = 0; i < products.size(); ++i) {
    const Product<T>& p = products[i];
    how[i] = PooledProduct(p.m, p.n, p.k, p.trans_a);
    if (how[i].api != nullptr) api = how[i].api;
    first[i + 1] = first[i] + how[i].cut.blocks();
    cost += product_cost_ns<T>(p.m, p.n, p.k);
  }
  const BlasScope scope(api);
  c.run_chunks(first[products.size()], cost, [&](int64_t chunk) {
    size_t i = 0;
    while (chunk >= first[i + 1]) ++i;
    multiply_one(how[i], products[i], chunk - first[i]);
  });
}

}  // namespace

PooledProduct::PooledProduct(int64_t m, int64_t n, int64_t k, bool trans_a) {
  if (prefer_blas(m, n, k)) api = blas();
  cut = api != nullptr ? cut_for_blas(m, n, k) : cut_product(m, n, k, trans_a);
}

void PooledProduct::multiply(const Product<float>& p, int64_t block) const {
  multiply_one(*this, p, block);
}
void PooledProduct::multiply(const Product<double>& p, int64_t block) const {
  multiply_one(*this, p, block);
}

void multiply_on_pool(const RunContext& c, std::span<const Product<float>> products) {
  multiply_all(c, products);
}
void multiply_on_pool(const RunContext& c, std::span<const Product<double>> products) {
  multiply_all(c, products);
}

}  // namespace treenail::cpu
