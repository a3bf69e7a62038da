// SPDX-License-Identifier: Apache-2.0
// MatMul and BatchMatMul on floating dtypes, by cuBLASLt.
#include <cstdint>
#include <memory>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/products/blas_host.h"
#include "kernels/host/products/batch_geometry.h"

namespace treenail::cuda {
namespace {

using host::BatchGeometry;

// Whatever the last axis of the batch holds is one call, for its steps are alike.
StridedProduct innermost(const BatchGeometry& g, DType dtype) {
  StridedProduct product{dtype, g.m, g.n, g.k, g.trans_a, g.trans_b};
  product.stride_c = g.c_elements();
  if (g.axes.empty()) return product;
  const BatchGeometry::Axis& last = g.axes[g.axes.size() - 1];
  product.batch = last.extent;
  product.stride_a = last.step_a * g.a_elements();
  product.stride_b = last.step_b * g.b_elements();
  return product;
}

std::unique_ptr<Kernel> prepare_product(const PrepareContext& p) {
  const BatchGeometry g = BatchGeometry::of(p);
  if (g.work() == 0) return prepare_zeros(p);
  auto& device = static_cast<CudaDevice&>(p.device());
  const auto product = std::make_shared<BlasProduct>(device, innermost(g, p.output_type(0)));
  const int64_t calls = g.batch / (g.axes.empty() ? 1 : g.axes[g.axes.size() - 1].extent);
  const auto size = static_cast<int64_t>(dtype_size(p.output_type(0)));
  auto kernel = make_launching_kernel(p, [=](RunContext& c, CudaDevice&) {
    const auto* const a = static_cast<const std::byte*>(c.input(0).raw());
    const auto* const b = static_cast<const std::byte*>(c.input(1).raw());
    auto* const out = static_cast<std::byte*>(c.output(0).raw());
    const int64_t each = g.batch / calls;
    for (int64_t i = 0; i < g.batch; i += each) {
      int64_t ia, ib;
      g.entries(i, ia, ib);
      product->launch(a + ia * g.a_elements() * size, b + ib * g.b_elements() * size,
                      out + i * g.c_elements() * size, c.scratch());
    }
  });
  kernel->scratch_bytes = product->scratch_bytes();
  return kernel;
}

}  // namespace

void register_matmul_kernels(KernelRegistrations& r) {
  for (const char* op : {"MatMul", "BatchMatMul"}) {
    r.add(op, {{"T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}}},
          prepare_product);
  }
}

}  // namespace treenail::cuda
