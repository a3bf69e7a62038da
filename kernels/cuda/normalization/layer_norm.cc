// SPDX-License-Identifier: Apache-2.0
// LayerNorm and LayerNormGrad.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/normalization/column_space_host.h"
#include "kernels/cuda/normalization/rows_host.h"

namespace treenail::cuda {
namespace {

using Address = const void*;

constexpr int64_t kEach = 8;  // elements of a row for a thread

std::unique_ptr<Kernel> prepare_norm(const PrepareContext& p) {
  const double epsilon = p.op().get_float("epsilon");
  return make_launching_kernel(
      p, [function = function_for("layer_norm", p.input_type(0)), r = Rows(p.input_shape(0), kEach),
          epsilon](RunContext& c, CudaDevice& device) {
        const auto in = [&](int i) { return Address(c.input(i).raw()); };
        const auto out = [&](int i) { return Address(c.output(i).raw()); };
        function.launch(device, r.grid(device), r.rows, r.n, r.lanes, epsilon, in(0), in(1), in(2),
                        out(0), out(1), out(2));
      });
}

// The gradients of rows that are longer than a block has registers for: the columns' sums first,
// since dx may lie where the gradient of y does.
struct LongRows {
  Rows rows;
  gpu::ColumnSpace space;
  GpuFunction sums, gradient;

  explicit LongRows(const PrepareContext& p)
      : rows(p.input_shape(0), kEach),
        space(column_space(rows.n, 1, rows.rows)),
        sums(function_for("layer_norm_sums", p.input_type(0))),
        gradient(function_for("layer_norm_gradient", p.input_type(0))) {}
  void launch(RunContext& c, CudaDevice& device, Address dx, Address pieces) const {
    const auto in = [&](int i) { return Address(c.input(i).raw()); };
    sums.launch(device, pieces_grid(device, space), space, in(0), in(1), in(3), in(4), pieces);
    gradient.launch(device, rows.grid(device), rows.rows, rows.n, rows.lanes, in(0), in(1), in(2),
                    in(3), in(4), dx);
  }
};

// Of others, eight elements of a row for a lane.
struct ShortRows {
  static constexpr int64_t kEach = 8, kLongest = kEach * gpu::kMostThreads;
  gpu::ColumnSpace space;
  GpuFunction gradient;

  explicit ShortRows(const PrepareContext& p)
      : space(space_of(Rows(p.input_shape(0), kEach))),
        gradient(function_for("layer_norm_short_gradient", p.input_type(0))) {}
  static gpu::ColumnSpace space_of(const Rows& rows) {
    constexpr int64_t kBlocks = 512;  // what a large GPU runs at a time
    gpu::ColumnSpace s;
    s.columns = rows.n;
    s.count = rows.rows;
    s.tile = lanes_for(rows.n + kEach - 1, kEach);
    s.lanes = gpu::kMostThreads / s.tile;
    const int64_t pieces = std::clamp<int64_t>(s.count / s.lanes, 1, kBlocks);
    s.piece = std::max<int64_t>(1, parts(parts(s.count, pieces), s.lanes) * s.lanes);
    s.pieces = parts(s.count, s.piece);
    return s;
  }
  void launch(RunContext& c, CudaDevice& device, Address dx, Address pieces) const {
    const auto in = [&](int i) { return Address(c.input(i).raw()); };
    gradient.launch(device, grid_for(device, space.pieces * gpu::kMostThreads), space, in(0), in(1),
                    in(2), in(3), in(4), dx, pieces);
  }
};

// Scratch: two numbers for each piece of a column.
template <class Way>
std::unique_ptr<Kernel> prepare_gradient_by(const PrepareContext& p) {
  const Way way(p);
  const gpu::ColumnSpace& s = way.space;
  const size_t bytes = 2 * static_cast<size_t>(s.results()) * dtype_size(p.input_type(2));
  auto kernel =
      make_launching_kernel(p, [way, add = function_for("add_column_sums", p.input_type(2))](
                                   RunContext& c, CudaDevice& device) {
        const auto out = [&](int i) { return Address(c.output(i).raw()); };
        const Address pieces = c.scratch();
        way.launch(c, device, out(0), pieces);
        add.launch(device, columns_grid(device, way.space), way.space, column_lanes(way.space),
                   pieces, out(1), out(2));
      });
  kernel->scratch_bytes = bytes;
  return kernel;
}

std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const bool fits = Rows(p.input_shape(0), kEach).n <= ShortRows::kLongest;
  return fits ? prepare_gradient_by<ShortRows>(p) : prepare_gradient_by<LongRows>(p);
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
