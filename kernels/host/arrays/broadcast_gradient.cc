// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic of gradients: which axes broadcasting stretched, and the shape a reduction
// leaves when it keeps its axes.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"

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

// A flag for each axis that `axes` names.
std::vector<bool> flagged_axes(const Tensor& axes, int rank) {
  std::vector<bool> flags(static_cast<size_t>(rank));
  for (const int64_t axis : shape_values(axes)) {
    const auto i = static_cast<size_t>(ShapeContext::checked_axis(axis, rank, "reduction axis"));
    if (flags[i]) throw invalid_argument("reduction axis ", axis, " is named twice");
    flags[i] = true;
  }
  return flags;
}

std::unique_ptr<Kernel> prepare_reduced_shape(const PrepareContext&) {
  return make_kernel(
      [](RunContext& run) {
        std::vector<int64_t> kept = shape_values(run.input(0));
        const std::vector<bool> reduced = flagged_axes(run.input(1), static_cast<int>(kept.size()));
        Tensor& output = run.output(0);
        for (size_t i = 0; i < kept.size(); ++i) {
          const int64_t extent = reduced[i] ? 1 : kept[i];
          if (output.dtype() == DType::kInt64) {
            output.data<int64_t>()[i] = extent;
          } else {
            output.data<int32_t>()[i] = static_cast<int32_t>(extent);
          }
        }
      },
      100);
}

std::unique_ptr<Kernel> prepare_reduction_order(const PrepareContext& c) {
  const DType dtype = c.output_type(0);
  return make_kernel(
      [dtype](RunContext& run) {
        const std::vector<int64_t> shape = shape_values(run.input(0));
        const std::vector<bool> reduced =
            flagged_axes(run.input(1), static_cast<int>(shape.size()));
        std::vector<int64_t> order, flat = {1};
        for (const bool wanted : {true, false}) {
          for (size_t i = 0; i < shape.size(); ++i) {
            if (reduced[i] != wanted) continue;
            order.push_back(static_cast<int64_t>(i));
            if (wanted) {
              flat[0] *= shape[i];
            } else {
              flat.push_back(shape[i]);
            }
          }
        }
        run.set_output(0, int_vector(dtype, order));
        run.set_output(1, int_vector(dtype, flat));
      },
      200);
}

}  // namespace

void register_broadcast_gradient_kernels(KernelRegistry& registry) {
  registry.add("BroadcastGradientArgs", {}, prepare_broadcast_gradient_args);
  registry.add("ReducedShape", {}, prepare_reduced_shape);
  registry.add("ReductionOrder", {}, prepare_reduction_order);
}

}  // namespace treenail::host
