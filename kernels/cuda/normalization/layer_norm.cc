// SPDX-License-Identifier: Apache-2.0
// LayerNorm and LayerNormGrad.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/normalization/column_space_host.h"

namespace treenail::cuda {
namespace {

using Address = const void*;

// Rows of n elements along the last axis.
struct Rows {
  int64_t rows, n;
  int lanes;
  explicit Rows(const Shape& shape)
      : rows(shape.sub(0, shape.rank() - 1).num_elements()),
        n(shape.dim(shape.rank() - 1)),
        lanes(lanes_for(n, 8)) {}
  Grid grid(const CudaDevice& device) const { return grid_for(device, rows * lanes); }
};

GpuFunction function_for(const char* what, DType dtype) {
  return GpuFunction(kept_name(concat(what, "_", dtype_name(dtype))));
}

std::unique_ptr<Kernel> prepare_norm(const PrepareContext& p) {
  const double epsilon = p.op().get_float("epsilon");
  return make_launching_kernel(
      p, [function = function_for("layer_norm", p.input_type(0)), r = Rows(p.input_shape(0)),
          epsilon](RunContext& c, CudaDevice& device) {
        const auto in = [&](int i) { return Address(c.input(i).raw()); };
        const auto out = [&](int i) { return Address(c.output(i).raw()); };
        function.launch(device, r.grid(device), r.rows, r.n, r.lanes, epsilon, in(0), in(1), in(2),
                        out(0), out(1), out(2));
      });
}

struct Gradient {
  Rows rows;
  gpu::ColumnSpace space;
  GpuFunction sums, add, gradient;

  explicit Gradient(const PrepareContext& p)
      : rows(p.input_shape(0)),
        space(column_space(rows.n, 1, rows.rows)),
        sums(function_for("layer_norm_sums", p.input_type(0))),
        add(function_for("add_column_sums", p.input_type(2))),
        gradient(function_for("layer_norm_gradient", p.input_type(0))) {}
  // The columns' sums first: dx may lie where the gradient of y does.
  void launch(RunContext& c, CudaDevice& device) const {
    const auto in = [&](int i) { return Address(c.input(i).raw()); };
    const auto out = [&](int i) { return Address(c.output(i).raw()); };
    const Address pieces = c.scratch();
    sums.launch(device, pieces_grid(device, space), space, in(0), in(1), in(3), in(4), pieces);
    add.launch(device, columns_grid(device, space), space, column_lanes(space), pieces, out(1),
               out(2));
    gradient.launch(device, rows.grid(device), rows.rows, rows.n, rows.lanes, in(0), in(1), in(2),
                    in(3), in(4), out(0));
  }
};

std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const Gradient g(p);
  auto kernel =
      make_launching_kernel(p, [g](RunContext& c, CudaDevice& device) { g.launch(c, device); });
  kernel->scratch_bytes = 2 * static_cast<size_t>(g.space.results()) * dtype_size(p.input_type(2));
  return kernel;
}

}  // namespace

void register_layer_norm_kernels(KernelRegistrations& r) {
  const auto add = [&](const char* op, PrepareFn prepare) {
    r.add(op,
          {{"T", {DType::kFloat32, DType::kFloat16, DType::kBFloat16}}, {"U", {DType::kFloat32}}},
          prepare);
    r.add(op, {{"T", {DType::kFloat64}}, {"U", {DType::kFloat64}}}, prepare);
  };
  add("LayerNorm", prepare_norm);
  add("LayerNormGrad", prepare_gradient);
}

}  // namespace treenail::cuda
