// SPDX-License-Identifier: Apache-2.0
// SparseMatMul: bfloat16 operands are widened whole, then a product in float.
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/products/pooled_product.h"
#include "kernels/cpu/simd/aligned.h"

namespace treenail::cpu {
namespace {

// Room that an operand needs to be widened into.
int64_t wide_elements(const PrepareContext& p, int i) {
  return p.input_type(i) == DType::kBFloat16 ? aligned(p.input_shape(i).num_elements()) : 0;
}

const float* widened(RunContext& c, int i, float* room) {
  const Tensor& given = c.input(i);
  if (given.dtype() == DType::kFloat32) return given.data<float>();
  const auto* from = given.data<BFloat16>();
  c.parallel_for(given.num_elements(), 16384, 0.3, [&](int64_t begin, int64_t end) {
    widen(from + begin, room + begin, end - begin);
  });
  return room;
}

std::unique_ptr<Kernel> prepare_sparse_matmul(const PrepareContext& p) {
  Product<float> product;
  product.m = p.output_shape(0).dim(0);
  product.n = p.output_shape(0).dim(1);
  product.trans_a = p.op().get_bool("transpose_a");
  product.trans_b = p.op().get_bool("transpose_b");
  product.k = p.input_shape(0).dim(product.trans_a ? 0 : 1);
  product.lda = p.input_shape(0).dim(1);
  product.ldb = p.input_shape(1).dim(1);
  product.ldc = product.n;
  const int64_t room_a = wide_elements(p, 0), room_b = wide_elements(p, 1);
  return make_kernel(
      [product, room_a](RunContext& c) {
        Product<float> now = product;
        float* const room = reinterpret_cast<float*>(c.scratch());
        now.a = widened(c, 0, room);
        now.b = widened(c, 1, room + room_a);
        now.c = c.output(0).data<float>();
        multiply_on_pool(c, {&now, 1});
      },
      product_cost_ns<float>(product.m, product.n, product.k),
      static_cast<size_t>(room_a + room_b) * sizeof(float));
}

}  // namespace

void register_sparse_matmul_kernels(KernelRegistry& r) {
  r.add("SparseMatMul", {}, prepare_sparse_matmul);
}

}  // namespace treenail::cpu
