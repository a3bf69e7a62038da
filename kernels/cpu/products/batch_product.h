// SPDX-License-Identifier: Apache-2.0
// The geometry MatMul and BatchMatMul share: one product per batch entry, broadcast batches, and
// which entry of each operand it takes. Rows of a batch that share one right operand are one tall
// product.
#pragma once

#include <cstdint>

#include "framework/base/small_vector.h"
#include "framework/runtime/kernel/kernel.h"
#include "kernels/cpu/products/gemm.h"

namespace treenail::cpu {

struct BatchProduct {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  bool adjoint = false;  // transposition conjugates
  struct Axis {
    int64_t extent = 1, step_a = 0, step_b = 0;  // steps in matrices; 0: broadcast
  };
  SmallVector<Axis, 2> axes;  // of the batch
  bool same_b = true;         // one right operand for the whole batch

  // For an op of two inputs with flags transpose_* (MatMul) or adj_*.
  static BatchProduct of(const PrepareContext& c);

  int64_t a_elements() const { return m * k; }
  int64_t b_elements() const { return k * n; }
  int64_t c_elements() const { return m * n; }
  double work() const {
    return static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }

  // Which matrices entry `index` of the batch multiplies.
  void entries(int64_t index, int64_t& a, int64_t& b) const;

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
