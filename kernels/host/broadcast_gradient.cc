// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic of gradients: which axes broadcasting stretched, and the shape a reduction
// leaves when it keeps its axes.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/kernel.h"
#include "framework/runtime/kernel_registry.h"

namespace treenail::host {
namespace {

Tensor int_vector(DType dtype, const std::vector<int64_t>& values) {
  if (dtype == DType::kInt64) return Tensor::vector(std::span<const int64_t>(values));
  Tensor t(dtype, Shape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
  return t;
}

std::vector<int64_t> shape_values(const Tensor& t) {
  std::vector<int64_t> storage(static_cast<size_t>(t.num_elements()));
  const std::span<const int64_t> values = as_int64(t, storage);
  return {values.begin(), values.end()};
}

// The axes of the broadcast shape where `own` has extent 1 (or no axis) and the other shape has
// not; both extents 1 count for neither.
std::vector<int64_t> stretched_axes(const std::vector<int64_t>& own,
                                    const std::vector<int64_t>& other) {
  const size_t rank = std::max(own.size(), other.size());
  const auto extent = [rank](const std::vector<int64_t>& shape, size_t axis) {
    const size_t missing = rank - shape.size();
    return axis < missing ? 1 : shape[axis - missing];
  };
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t mine = extent(own, axis), theirs = extent(other, axis);
    if (mine != theirs && mine != 1 && theirs != 1) {
      throw invalid_argument("Incompatible shapes: ", Shape(own), " vs. ", Shape(other));
    }
    const bool absent = axis < rank - own.size();
    if (mine == 1 && (theirs != 1 || absent)) axes.push_back(static_cast<int64_t>(axis));
  }
  return axes;
}

std::unique_ptr<Kernel> prepare_broadcast_gradient_args(const PrepareContext& c) {
  const DType dtype = c.output_type(0);
  return make_kernel(
      [dtype](RunContext& run) {
        const std::vector<int64_t> s0 = shape_values(run.input(0)), s1 = shape_values(run.input(1));
        run.set_output(0, int_vector(dtype, stretched_axes(s0, s1)));
        run.set_output(1, int_vector(dtype, stretched_axes(s1, s0)));
      },
      200);
}

std::unique_ptr<Kernel> prepare_reduced_shape(const PrepareContext&) {
  return make_kernel(
      [](RunContext& run) {
        std::vector<int64_t> kept = shape_values(run.input(0));
        const auto rank = static_cast<int>(kept.size());
        std::vector<bool> seen(kept.size());
        for (const int64_t axis : shape_values(run.input(1))) {
          const auto i =
              static_cast<size_t>(ShapeContext::checked_axis(axis, rank, "reduction axis"));
          if (seen[i]) throw invalid_argument("reduction axis ", axis, " is named twice");
          seen[i] = true;
          kept[i] = 1;
        }
        Tensor& output = run.output(0);
        for (size_t i = 0; i < kept.size(); ++i) {
          if (output.dtype() == DType::kInt64) {
            output.data<int64_t>()[i] = kept[i];
          } else {
            output.data<int32_t>()[i] = static_cast<int32_t>(kept[i]);
          }
        }
      },
      100);
}

}  // namespace

void register_broadcast_gradient_kernels(KernelRegistry& registry) {
  registry.add("BroadcastGradientArgs", {}, prepare_broadcast_gradient_args);
  registry.add("ReducedShape", {}, prepare_reduced_shape);
}

}  // namespace treenail::host
