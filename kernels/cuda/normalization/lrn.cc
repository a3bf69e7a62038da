// SPDX-License-Identifier: Apache-2.0
// LRN and LRNGrad.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/normalization/lrn_space.h"
#include "kernels/host/normalization/lrn_attributes.h"

namespace treenail::cuda {
namespace {

using gpu::LrnSpace;
using Address = const void*;

LrnSpace space_of(const PrepareContext& p) {
  const Shape& shape = p.output_shape(0);
  const host::LrnAttributes attributes(p.op(), shape.dim(3));
  LrnSpace l;
  l.elements = shape.num_elements();
  l.radius = attributes.radius;
  l.channels = gpu::divisor_of(std::max<int64_t>(1, shape.dim(3)));
  l.bias = attributes.bias;
  l.alpha = attributes.alpha;
  l.beta = attributes.beta;
  return l;
}

std::unique_ptr<Kernel> prepare_lrn(const PrepareContext& p) {
  return make_launching_kernel(p, [function = function_for("lrn", p.input_type(0)),
                                   l = space_of(p)](RunContext& c, CudaDevice& device) {
    function.launch(device, grid_for(device, l.elements), l, Address(c.input(0).raw()),
                    Address(c.output(0).raw()));
  });
}

// Scratch: two numbers for each element.
std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const LrnSpace l = space_of(p);
  const DType dtype = p.input_type(0);
  const size_t number = std::max<size_t>(dtype_size(dtype), sizeof(float));
  const size_t bytes = static_cast<size_t>(l.elements) * number;
  auto kernel = make_launching_kernel(p, [terms = function_for("lrn_terms", dtype),
                                          gradient = function_for("lrn_gradient", dtype), l,
                                          bytes](RunContext& c, CudaDevice& device) {
    const auto in = [&](int i) { return Address(c.input(i).raw()); };
    const Address norms = c.scratch(), quotients = c.scratch() + bytes;
    const Grid grid = grid_for(device, l.elements);
    terms.launch(device, grid, l, in(0), in(1), in(2), norms, quotients);
    gradient.launch(device, grid, l, in(0), in(1), norms, quotients, Address(c.output(0).raw()));
  });
  kernel->scratch_bytes = 2 * bytes;
  return kernel;
}

}  // namespace

void register_lrn_kernels(KernelRegistrations& r) {
  const TypeConstraint type = {
      "T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}};
  r.add("LRN", {type}, prepare_lrn);
  r.add("LRNGrad", {type}, prepare_gradient);
}

}  // namespace treenail::cuda
