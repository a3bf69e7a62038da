// SPDX-License-Identifier: Apache-2.0
// Conv2D, Conv3D, depthwise convolution and their gradients: by cuDNN, or as plain sums
// (direct.cu) where it has no such convolution.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "kernels/cuda/convolution/conv_space.h"
#include "kernels/cuda/convolution/dnn_convolution_host.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"

namespace treenail::cuda {
namespace {

using host::ConvGeometry;
using host::ConvPass;

// --- Plain sums ---------------------------------------------------------------------------------

gpu::ConvSpace space_of(const ConvGeometry& g) {
  gpu::ConvSpace s;
  s.input.batch = s.output.batch = g.batch;
  s.input.channels = g.channels;
  s.output.channels = g.filters;
  s.channels_second = g.channels_second ? 1 : 0;
  s.depthwise = g.depthwise ? 1 : 0;
  s.multiplier = g.depthwise ? g.filters / g.channels : 1;
  const WindowAxis* const axes[] = {&g.planes, &g.rows, &g.columns};
  for (int i = 0; i < gpu::kConvAxes; ++i) {
    const WindowAxis& a = *axes[i];
    s.input.extent[i] = a.input;
    s.output.extent[i] = a.output;
    s.axis[i] = {a.taps, a.stride, a.dilation, a.pad_before};
  }
  s.lanes = lanes_for(g.batch * g.output_pixels(), 4);
  return s;
}

class DirectConvolution {
 public:
  DirectConvolution(ConvPass pass, const ConvGeometry& g, DType dtype)
      : space_(space_of(g)), threads_(threads_for(pass, g)), function_(function_of(pass, dtype)) {}

  void launch(CudaDevice& device, const void* a, const void* b, void* out) const {
    function_.launch(device, grid_for(device, threads_), space_, a, b, out);
  }

 private:
  int64_t threads_for(ConvPass pass, const ConvGeometry& g) const {
    switch (pass) {
      case ConvPass::kForward:
        return g.batch * g.output_pixels() * g.filters;
      case ConvPass::kInput:
        return g.batch * g.input_pixels() * g.channels;
      case ConvPass::kFilter:
        break;
    }
    return g.filter_elements() * space_.lanes;
  }
  static GpuFunction function_of(ConvPass pass, DType dtype) {
    constexpr std::string_view kNames[] = {"conv_forward", "conv_input", "conv_filter"};
    return function_for(kNames[static_cast<int>(pass)], dtype);
  }

  gpu::ConvSpace space_;
  int64_t threads_;
  GpuFunction function_;
};

// --- Ops ----------------------------------------------------------------------------------------

bool all_aligned(std::initializer_list<const void*> places) {
  for (const void* place : places) {
    if (reinterpret_cast<uintptr_t>(place) % DnnConvolution::kAlignment != 0) return false;
  }
  return true;
}

// Which inputs the two operands are: the gradients' other input holds a shape.
template <ConvPass kPass>
std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
  const ConvGeometry g = ConvGeometry::of(kPass, p);
  if (g.empty()) return prepare_zeros(p);
  const DType dtype = p.output_type(0);
  constexpr int kFirst = kPass == ConvPass::kInput ? 1 : 0;
  constexpr int kSecond = kPass == ConvPass::kForward ? 1 : 2;
  std::shared_ptr<const DnnConvolution> library =
      DnnConvolution::find(static_cast<CudaDevice&>(p.device()), kPass, g, dtype);
  const size_t scratch = library != nullptr ? library->scratch_bytes : 0;
  auto kernel = make_launching_kernel(p, [library = std::move(library),
                                          direct = DirectConvolution(kPass, g, dtype)](
                                             RunContext& c, CudaDevice& device) {
    const void *const a = c.input(kFirst).raw(), *const b = c.input(kSecond).raw();
    void* const out = c.output(0).raw();
    if (library != nullptr && all_aligned({a, b, out}) && library->launch(a, b, out, c.scratch()))
      return;
    direct.launch(device, a, b, out);
  });
  kernel->scratch_bytes = scratch;
  return kernel;
}

}  // namespace

void register_convolution_kernels(KernelRegistrations& r) {
  const TypeConstraint type = {
      "T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}};
  for (const std::string forward : {"Conv2D", "Conv3D", "DepthwiseConv2dNative"}) {
    r.add(forward, {type}, prepare<ConvPass::kForward>);
    r.add(forward + "BackpropInput", {type}, prepare<ConvPass::kInput>);
    r.add(forward + "BackpropFilter", {type}, prepare<ConvPass::kFilter>);
  }
}

}  // namespace treenail::cuda
