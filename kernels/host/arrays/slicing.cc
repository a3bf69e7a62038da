// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/slicing.cc: strided copies out of a tensor, into zeros or into a
// variable.
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/slice_spec.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/variable.h"
#include "kernels/host/arrays/copy_plan.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/arrays/slice_copy.h"
#include "kernels/host/arrays/strided_copy.h"
#include "kernels/host/elementwise/sum.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

CopyPlan plan_slice(const PrepareContext& p) {
  const Shape& input = p.input_shape(0);
  const Shape& output = p.output_shape(0);
  int64_t storage[kMaxRank];
  const std::span<const int64_t> begin = as_int64(p.host_value(1), storage);
  const Strides from = dense_strides(input);
  const Strides to = dense_strides(output);
  StridedCopy copy(p.output_type(0));
  int64_t offset = 0;
  for (int i = 0; i < input.rank(); ++i) {
    copy.axis(output.dim(i), from[i], to[i]);
    offset += begin[static_cast<size_t>(i)] * from[i];
  }
  return {false, {{copy.offsets(offset, 0).finish()}}};
}

CopyPlan plan_strided_slice(const PrepareContext& p) {
  const SliceSpec spec = slice_of(p, p.input_shape(0), 1);
  return {false, {{slice_copy(p.output_type(0), p.input_shape(0), spec, false)}}};
}

CopyPlan plan_strided_slice_grad(const PrepareContext& p) {
  const Shape& shape = p.output_shape(0);
  return {true, {{slice_copy(p.output_type(0), shape, slice_of(p, shape, 1), true), 4}}};
}

// Only the slice's places are touched where the array may be taken.
KernelPtr prepare_strided_slice_add(const PrepareContext& p) {
  const DType dtype = p.input_type(0);
  const Shape& shape = p.input_shape(0);
  const SliceSpec spec = slice_of(p, shape, 1);
  const StridedCopy out = slice_copy(dtype, shape, spec, false);
  const StridedCopy in = slice_copy(dtype, shape, spec, true);
  return make_kernel(
      [=](RunContext& c) {
        Tensor whole = c.take_input(0);
        if (!whole.exclusive()) whole = whole.deep_copy();
        const Tensor& value = c.input(4);
        const Tensor before(dtype, value.shape());
        out.run(c, whole.raw(), const_cast<void*>(before.raw()));
        const Tensor terms[] = {before, value};
        const Tensor sum = sum_of_values(c, terms);
        in.run(c, sum.raw(), whole.raw());
        c.set_output(0, std::move(whole));
      },
      3 * out.cost_ns());
}

// The variable's shape is known when it is run.
KernelPtr prepare_strided_slice_assign(const PrepareContext& p) {
  const DType dtype = p.input_type(4);
  const auto begin = partial_value_of(p.host_value(1));
  const auto end = partial_value_of(p.host_value(2));
  const auto strides = partial_value_of(p.host_value(3));
  const double cost = 100 + 0.5 * static_cast<double>(p.input_shape(4).num_elements());
  return make_kernel(
      [=, entries = p.input_shape(1).dim(0), masks = SliceMasks::of(p.op())](RunContext& c) {
        const Tensor& given = c.input(4);
        const Variable::Write write(variable_of_dtype(c.input(0), dtype));
        Tensor& value = write.value();
        const SliceSpec spec =
            resolve_slice(value.shape(), begin.get(), end.get(), strides.get(), entries, masks);
        check_slice_value(spec, given.shape());
        slice_copy(dtype, value.shape(), spec, true).run(c, given.raw(), value.raw());
      },
      cost);
}

constexpr CopyOp kCopies[] = {
    {"Slice", plan_slice},
    {"StridedSlice", plan_strided_slice},
    {"StridedSliceGrad", plan_strided_slice_grad},
};

}  // namespace

SliceSpec slice_of(const PrepareContext& p, const Shape& shape, int first) {
  const auto begin = partial_value_of(p.host_value(first));
  const auto end = partial_value_of(p.host_value(first + 1));
  const auto strides = partial_value_of(p.host_value(first + 2));
  return resolve_slice(shape, begin.get(), end.get(), strides.get(), p.input_shape(first).dim(0),
                       SliceMasks::of(p.op()));
}

StridedCopy slice_copy(DType dtype, const Shape& whole, const SliceSpec& spec, bool into_whole) {
  const Strides strides = dense_strides(whole);
  int64_t dense[kMaxRank];
  int64_t stride = 1;
  for (int i = whole.rank(); i-- > 0;) {
    dense[i] = stride;
    stride *= spec.axes[static_cast<size_t>(i)].count;
  }
  StridedCopy copy(dtype);
  int64_t offset = 0;
  for (int i = 0; i < whole.rank(); ++i) {
    const SliceAxis& axis = spec.axes[static_cast<size_t>(i)];
    const int64_t step = axis.count > 1 ? strides[i] * *axis.stride
                                        : 1;  // the stride of one element may be anything
    offset += *axis.begin * strides[i];
    if (into_whole) {
      copy.axis(axis.count, dense[i], step);
    } else {
      copy.axis(axis.count, step, dense[i]);
    }
  }
  return copy.offsets(into_whole ? 0 : offset, into_whole ? offset : 0).finish();
}

void check_slice_value(const SliceSpec& spec, const Shape& value) {
  if (spec.output.compatible(value)) return;
  throw invalid_argument("the slice of the variable has shape ", spec.output,
                         ", the value has shape ", value);
}

void register_slicing_kernels(KernelRegistry& r) {
  add_copy_ops(r, kCopies);
  r.add("TensorStridedSliceAdd", {}, prepare_strided_slice_add);
  r.add("ResourceStridedSliceAssign", {}, prepare_strided_slice_assign);
}

}  // namespace treenail::host
