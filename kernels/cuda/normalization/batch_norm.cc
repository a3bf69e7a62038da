// SPDX-License-Identifier: Apache-2.0
// FusedBatchNorm and FusedBatchNormGrad.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/normalization/batch_norm_options.h"
#include "kernels/cuda/normalization/column_space_host.h"

namespace treenail::cuda {
namespace {

using gpu::BatchNormOptions;
using gpu::ColumnSpace;
using Address = const void*;

BatchNormOptions options_of(const OpInstance& op) {
  BatchNormOptions o;
  o.epsilon = op.get_float("epsilon");
  if (op.def().attr_index("exponential_avg_factor") >= 0)
    o.average_factor = op.get_float("exponential_avg_factor");
  o.training = op.get_bool("is_training") ? 1 : 0;
  return o;
}

// Columns are channels.
ColumnSpace channels_of(const OpInstance& op, const Shape& x) {
  const bool second = op.get_string("data_format") == "NCHW";
  const int64_t pixels = second ? x.dim(2) * x.dim(3) : x.dim(1) * x.dim(2);
  return column_space(x.dim(second ? 1 : 3), second ? pixels : 1, x.dim(0) * pixels);
}

// Scratch: two numbers for each piece of a channel, then what each channel's elements go by.
struct BatchNorm {
  static constexpr size_t kOfAPiece = 2, kMostOfAChannel = 4;
  ColumnSpace space;
  BatchNormOptions options;
  size_t number_bytes;

  explicit BatchNorm(const PrepareContext& p)
      : space(channels_of(p.op(), p.input_shape(0))),
        options(options_of(p.op())),
        number_bytes(dtype_size(p.input_type(2))) {}
  size_t piece_bytes() const {
    return static_cast<size_t>(space.results()) * kOfAPiece * number_bytes;
  }
  size_t scratch() const {
    return piece_bytes() + static_cast<size_t>(space.columns) * kMostOfAChannel * number_bytes;
  }
};

struct NormFunctions {
  GpuFunction statistics, estimates, normalize;
  NormFunctions(DType image, DType channel)
      : statistics(function_for("batch_statistics", image)),
        estimates(function_for("batch_estimates", channel)),
        normalize(function_for("batch_normalize", image)) {}
};

void normalize(RunContext& c, CudaDevice& device, const BatchNorm& b, const NormFunctions& f) {
  const auto in = [&](int i) { return Address(c.input(i).raw()); };
  const auto out = [&](int i) { return Address(c.output(i).raw()); };
  const Address pieces = c.scratch(), normals = c.scratch() + b.piece_bytes();
  ColumnSpace given = b.space;
  if (b.options.training != 0) {
    f.statistics.launch(device, pieces_grid(device, b.space), b.space, in(0), pieces);
  } else {
    given.pieces = 0;
  }
  f.estimates.launch(device, columns_grid(device, given), given, column_lanes(given), b.options,
                     pieces, in(1), in(2), in(3), in(4), out(1), out(2), out(3), out(4), normals);
  f.normalize.launch(device, pieces_grid(device, b.space), b.space, normals, in(0), out(0));
}

std::unique_ptr<Kernel> prepare_norm(const PrepareContext& p) {
  const BatchNorm b(p);
  auto kernel = make_launching_kernel(
      p, [b, f = NormFunctions(p.input_type(0), p.input_type(1))](
             RunContext& c, CudaDevice& device) { normalize(c, device, b, f); });
  kernel->scratch_bytes = b.scratch();
  return kernel;
}

struct GradientFunctions {
  GpuFunction sums, terms, gradient;
  GradientFunctions(DType image, DType channel)
      : sums(function_for("batch_gradient_sums", image)),
        terms(function_for("batch_gradient_terms", channel)),
        gradient(function_for("batch_gradient", image)) {}
};

void differentiate(RunContext& c, CudaDevice& device, const BatchNorm& b,
                   const GradientFunctions& f) {
  const auto in = [&](int i) { return Address(c.input(i).raw()); };
  const auto out = [&](int i) { return Address(c.output(i).raw()); };
  const Address pieces = c.scratch(), terms = c.scratch() + b.piece_bytes();
  f.sums.launch(device, pieces_grid(device, b.space), b.space, in(0), in(1), in(3), pieces);
  f.terms.launch(device, columns_grid(device, b.space), b.space, column_lanes(b.space), b.options,
                 pieces, in(2), in(3), in(4), out(1), out(2), terms);
  f.gradient.launch(device, pieces_grid(device, b.space), b.space, b.options, terms, in(0), in(1),
                    out(0));
}

// Of no elements the sums are 0, whatever the variance.
void differentiate_nothing(RunContext& c, CudaDevice& device) {
  for (int i : {1, 2}) device.zero(c.output(i).raw(), c.output(i).bytes());
}

std::unique_ptr<Kernel> prepare_gradient(const PrepareContext& p) {
  const BatchNorm b(p);
  if (b.space.pieces == 0) return make_launching_kernel(p, differentiate_nothing);
  auto kernel = make_launching_kernel(
      p, [b, f = GradientFunctions(p.input_type(0), p.input_type(2))](
             RunContext& c, CudaDevice& device) { differentiate(c, device, b, f); });
  kernel->scratch_bytes = b.scratch();
  return kernel;
}

}  // namespace

void register_batch_norm_kernels(KernelRegistrations& r) {
  const auto add = [&](const char* op, PrepareFn prepare) {
    r.add(op,
          {{"T", {DType::kFloat32, DType::kFloat16, DType::kBFloat16}}, {"U", {DType::kFloat32}}},
          prepare);
    r.add(op, {{"T", {DType::kFloat64}}, {"U", {DType::kFloat64}}}, prepare);
  };
  add("FusedBatchNorm", prepare_norm);
  add("FusedBatchNormGrad", prepare_gradient);
}

}  // namespace treenail::cuda
