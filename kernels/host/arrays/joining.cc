// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/joining.cc. Around the axis, every array is [outer, extent * inner]:
// joining and taking apart copy one such matrix per piece.
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/copy_plan.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {
namespace {

// Elements before and after `axis` of a shape.
struct Around {
  int64_t outer;
  int64_t inner;
};
Around around(const Shape& shape, int axis) {
  return {shape.sub(0, axis).num_elements(), shape.sub(axis + 1, shape.rank()).num_elements()};
}

int axis_of(int64_t given, int rank) { return static_cast<int>(given < 0 ? given + rank : given); }

// Piece i: `width` elements of each of `outer` rows, at `offset` in rows of `total` elements of the
// whole.
StridedCopy into_whole(DType dtype, int64_t outer, int64_t width, int64_t total, int64_t offset) {
  return StridedCopy(dtype).axis(outer, width, total).axis(width, 1, 1).offsets(0, offset).finish();
}
StridedCopy out_of_whole(DType dtype, int64_t outer, int64_t width, int64_t total, int64_t offset) {
  return StridedCopy(dtype).axis(outer, total, width).axis(width, 1, 1).offsets(offset, 0).finish();
}

CopyPlan plan_concat(const PrepareContext& p) {
  const int n = p.num_inputs() - 1;
  const Shape& output = p.output_shape(0);
  const int axis = axis_of(scalar_int64(p.host_value(n)), output.rank());
  const Around a = around(output, axis);
  CopyPlan plan;
  int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    const int64_t width = p.input_shape(i).dim(axis) * a.inner;
    plan.parts.push_back(
        {into_whole(p.output_type(0), a.outer, width, output.dim(axis) * a.inner, offset), i});
    offset += width;
  }
  return plan;
}

CopyPlan plan_parts(const PrepareContext& p, int source, int axis) {
  const Shape& whole = p.input_shape(source);
  const Around a = around(whole, axis);
  CopyPlan plan;
  int64_t offset = 0;
  for (int i = 0; i < p.op().num_outputs(); ++i) {
    const int64_t width = p.output_shape(i).dim(axis) * a.inner;
    plan.parts.push_back(
        {out_of_whole(p.output_type(i), a.outer, width, whole.dim(axis) * a.inner, offset), source,
         i});
    offset += width;
  }
  return plan;
}

CopyPlan plan_split(const PrepareContext& p) {
  return plan_parts(p, 1, axis_of(scalar_int64(p.host_value(0)), p.input_shape(1).rank()));
}

CopyPlan plan_split_v(const PrepareContext& p) {
  return plan_parts(p, 0, axis_of(scalar_int64(p.host_value(2)), p.input_shape(0).rank()));
}

CopyPlan plan_pack(const PrepareContext& p) {
  const Shape& output = p.output_shape(0);
  const int axis = axis_of(p.op().get_int("axis"), output.rank());
  const Around a = around(output, axis);
  CopyPlan plan;
  for (int i = 0; i < p.num_inputs(); ++i) {
    plan.parts.push_back(
        {into_whole(p.output_type(0), a.outer, a.inner, output.dim(axis) * a.inner, i * a.inner),
         i});
  }
  return plan;
}

CopyPlan plan_unpack(const PrepareContext& p) {
  const Shape& whole = p.input_shape(0);
  const int axis = axis_of(p.op().get_int("axis"), whole.rank());
  const Around a = around(whole, axis);
  CopyPlan plan;
  for (int i = 0; i < p.op().num_outputs(); ++i) {
    plan.parts.push_back(
        {out_of_whole(p.output_type(i), a.outer, a.inner, whole.dim(axis) * a.inner, i * a.inner),
         0, i});
  }
  return plan;
}

constexpr CopyOp kCopies[] = {
    {"Concat", plan_concat}, {"Split", plan_split},   {"SplitV", plan_split_v},
    {"Pack", plan_pack},     {"Unpack", plan_unpack},
};

}  // namespace

void register_joining_kernels(KernelRegistry& r) { add_copy_ops(r, kCopies); }

}  // namespace treenail::host
