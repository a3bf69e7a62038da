// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/recurrent/layer_host.h"

#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/fault_word.h"

namespace treenail::cuda {

DType computed_type(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

LayerProduct::LayerProduct(CudaDevice& device, DType dtype, const Sizes& s, Workspace& workspace)
    : bytes_(static_cast<size_t>(s.m * s.n) * dtype_size(s.wide ? computed_type(dtype) : dtype)) {
  if (bytes_ == 0 || s.k == 0) return;
  StridedProduct product{dtype, s.m, s.n, s.k, s.trans_a, s.trans_b};
  product.wide = s.wide;
  product_ = std::make_unique<const BlasProduct>(device, product);
  workspace.need(product_->scratch_bytes());
}

void LayerProduct::launch(CudaDevice& device, const void* a, const void* b, void* c,
                          std::byte* workspace) const {
  if (product_ != nullptr) return product_->launch(a, b, c, workspace);
  if (bytes_ > 0) device.zero(c, bytes_);
}

ArrayReduction column_sums(DType dtype, int64_t rows, int64_t columns, Workspace& workspace) {
  ArrayReduction sums("Sum", dtype, Shape{rows, columns}, {true, false});
  workspace.need(sums.scratch_bytes());
  return sums;
}

LayerArrays::LayerArrays(const host::LayerExtents& extents, const PrepareContext& p)
    : e(extents),
      dtype(p.op().get_type("T")),
      stored(static_cast<int64_t>(dtype_size(dtype))),
      computed(static_cast<int64_t>(dtype_size(computed_type(dtype)))) {}

const void* elements_of(const Tensor& tensor) {
  return tensor.num_elements() == 0 ? nullptr : tensor.raw();
}

void check_steps(RunContext& c, CudaDevice& device, Failure failure, int64_t time) {
  static constinit const GpuFunction kCheck("layer_steps");
  const FaultWord fault(device);
  const Tensor& steps = c.input(0);
  kCheck.launch(device, Grid{.threads = 1}, steps.data<int64_t>(), time, fault.word());
  fault.report(steps.raw(), steps.dtype(), failure,
               [time](int64_t, int64_t value) { host::check_steps(value, time); });
}

void launch_beside(CudaDevice& device, const LayerArrays& arrays, const gpu::BesideRows& rows) {
  const LayerArrays& a = arrays;
  function_for("layer_beside", a.dtype)
      .launch(device, grid_for(device, a.e.rows() * (a.e.input + a.e.cell)), rows);
}

std::unique_ptr<Kernel> empty_layer(const PrepareContext& p, bool sequence, int64_t time) {
  const int outputs = p.op().num_outputs();
  return make_launching_kernel(p, [=](RunContext& c, CudaDevice& device, Failure failure) {
    if (sequence) check_steps(c, device, failure, time);
    for (int i = 0; i < outputs; ++i) device.zero(c.output(i).raw(), c.output(i).bytes());
  });
}

void add_recurrent(KernelRegistrations& r, const char* op, PrepareFn prepare) {
  r.add(op, {{"T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}}},
        prepare);
}

}  // namespace treenail::cuda
