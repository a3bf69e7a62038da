// SPDX-License-Identifier: Apache-2.0
// One product of the CPU for each entry of a batch.
#pragma once

#include <cstdint>

#include "kernels/cpu/products/gemm.h"
#include "kernels/host/products/batch_geometry.h"

namespace treenail::cpu {

struct BatchProduct : host::BatchGeometry {
  static BatchProduct of(const PrepareContext& c) { return {host::BatchGeometry::of(c)}; }

  // The product of entry `index`; operands are dense.
  template <class T>
  Product<T> product(const T* a, const T* b, T* c, int64_t index) const {
    int64_t ia, ib;
    entries(index, ia, ib);
    Product<T> p;
    p.m = m;
    p.n = n;
    p.k = k;
    p.trans_a = trans_a;
    p.trans_b = trans_b;
    p.a = a + ia * a_elements();
    p.lda = trans_a ? m : k;
    p.b = b + ib * b_elements();
    p.ldb = trans_b ? k : n;
    p.c = c + index * c_elements();
    p.ldc = n;
    return p;
  }
};

}  // namespace treenail::cpu
