// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/joining.cc. Around the axis, every array is [outer, extent * inner]:
// joining and taking apart copy one such matrix per piece.
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// Elements before and after `axis` of a shape.
struct Around {
  int64_t outer;
  int64_t inner;
};
Around around(const Shape& shape, int axis) {
  return {shape.sub(0, axis).num_elements(), shape.sub(axis + 1, shape.rank()).num_elements()};
}

int axis_of(int64_t given, int rank) { return static_cast<int>(given < 0 ? given + rank : given); }

double total_cost(const std::vector<StridedCopy>& copies) {
  double cost = 0;
  for (const StridedCopy& copy : copies) cost += copy.cost_ns();
  return cost;
}

// Piece i: `width` elements of each of `outer` rows, at `offset` in rows of `total` elements of the
// whole.
StridedCopy into_whole(DType dtype, int64_t outer, int64_t width, int64_t total, int64_t offset) {
  return StridedCopy(dtype).axis(outer, width, total).axis(width, 1, 1).offsets(0, offset).finish();
}
StridedCopy out_of_whole(DType dtype, int64_t outer, int64_t width, int64_t total, int64_t offset) {
  return StridedCopy(dtype).axis(outer, total, width).axis(width, 1, 1).offsets(offset, 0).finish();
}

// All copies from inputs into output 0.
KernelPtr join_kernel(std::vector<StridedCopy> copies) {
  const double cost = total_cost(copies);
  return make_kernel(
      [copies = std::move(copies)](RunContext& c) {
        for (size_t i = 0; i < copies.size(); ++i)
          copies[i].run(c, c.input(static_cast<int>(i)).raw(), c.output(0).raw());
      },
      cost);
}

// All copies from input `source` into the outputs.
KernelPtr part_kernel(std::vector<StridedCopy> copies, int source) {
  const double cost = total_cost(copies);
  return make_kernel(
      [copies = std::move(copies), source](RunContext& c) {
        for (size_t i = 0; i < copies.size(); ++i)
          copies[i].run(c, c.input(source).raw(), c.output(static_cast<int>(i)).raw());
      },
      cost);
}

KernelPtr prepare_concat(const PrepareContext& p) {
  const int n = p.num_inputs() - 1;
  const Shape& output = p.output_shape(0);
  const int axis = axis_of(scalar_int64(p.host_value(n)), output.rank());
  const Around a = around(output, axis);
  std::vector<StridedCopy> copies;
  int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    const int64_t width = p.input_shape(i).dim(axis) * a.inner;
    copies.push_back(
        into_whole(p.output_type(0), a.outer, width, output.dim(axis) * a.inner, offset));
    offset += width;
  }
  return join_kernel(std::move(copies));
}

KernelPtr split_kernel(const PrepareContext& p, int source, int axis) {
  const Shape& whole = p.input_shape(source);
  const Around a = around(whole, axis);
  std::vector<StridedCopy> copies;
  int64_t offset = 0;
  for (int i = 0; i < p.op().num_outputs(); ++i) {
    const int64_t width = p.output_shape(i).dim(axis) * a.inner;
    copies.push_back(
        out_of_whole(p.output_type(i), a.outer, width, whole.dim(axis) * a.inner, offset));
    offset += width;
  }
  return part_kernel(std::move(copies), source);
}

KernelPtr prepare_split(const PrepareContext& p) {
  return split_kernel(p, 1, axis_of(scalar_int64(p.host_value(0)), p.input_shape(1).rank()));
}

KernelPtr prepare_split_v(const PrepareContext& p) {
  return split_kernel(p, 0, axis_of(scalar_int64(p.host_value(2)), p.input_shape(0).rank()));
}

KernelPtr prepare_pack(const PrepareContext& p) {
  const Shape& output = p.output_shape(0);
  const int axis = axis_of(p.op().get_int("axis"), output.rank());
  const Around a = around(output, axis);
  std::vector<StridedCopy> copies;
  for (int i = 0; i < p.num_inputs(); ++i) {
    copies.push_back(
        into_whole(p.output_type(0), a.outer, a.inner, output.dim(axis) * a.inner, i * a.inner));
  }
  return join_kernel(std::move(copies));
}

KernelPtr prepare_unpack(const PrepareContext& p) {
  const Shape& whole = p.input_shape(0);
  const int axis = axis_of(p.op().get_int("axis"), whole.rank());
  const Around a = around(whole, axis);
  std::vector<StridedCopy> copies;
  for (int i = 0; i < p.op().num_outputs(); ++i) {
    copies.push_back(
        out_of_whole(p.output_type(i), a.outer, a.inner, whole.dim(axis) * a.inner, i * a.inner));
  }
  return part_kernel(std::move(copies), 0);
}

}  // namespace

void register_joining_kernels(KernelRegistry& r) {
  r.add("Concat", {}, prepare_concat);
  r.add("Split", {}, prepare_split);
  r.add("SplitV", {}, prepare_split_v);
  r.add("Pack", {}, prepare_pack);
  r.add("Unpack", {}, prepare_unpack);
}

}  // namespace treenail::host
