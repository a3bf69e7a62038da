// SPDX-License-Identifier: Apache-2.0
// Adding one number per channel. Computed in kernels/cpu/elementwise/bias.cc (floating) and
// bias_plain.cc (integers, complex).
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

int channel_axis(const OpInstance& op, const PartialShape& value) {
  return op.get_string("data_format") == "NCHW" ? 1 : value.rank() - 1;
}

void bias_add_shape(ShapeContext& c) {
  PartialShape value = c.with_rank_at_least(0, 2);
  const PartialShape bias = c.with_rank(1, 1);
  if (value.rank_known()) {
    const int axis = channel_axis(c.op(), value);
    const int64_t channels = value.dim(axis), size = bias.dim(0);
    if (channels != kUnknown && size != kUnknown && channels != size) {
      throw invalid_argument("bias has ", size, " elements, but value, ", value, ", has ", channels,
                             " channels (data_format ", c.op().get_string("data_format"), ")");
    }
    if (channels == kUnknown) value = value.with_dim(axis, size);
  }
  c.set_output(0, value);
}

void bias_add_gradient(GradientContext& c) {
  const Value g = c.gradient();
  c.set(0, g);
  if (c.needed(1))
    c.set(1, c.e.call("BiasAddGrad", {g}, {{"data_format", c.op().get_string("data_format")}}));
}

void bias_add_grad_shape(ShapeContext& c) {
  const PartialShape value = c.with_rank_at_least(0, 2);
  c.set_output(
      0, PartialShape({value.rank_known() ? value.dim(channel_axis(c.op(), value)) : kUnknown}));
}

// A sum over all but the channels: its adjoint repeats the gradient along them.
void bias_add_grad_gradient(GradientContext& c) {
  const Value zeros =
      c.e.call("Fill", {c.input_shape_value(0), c.e.const_scalar(c.input_dtype(0), 0)});
  c.set(0, c.e.call("BiasAdd", {zeros, c.gradient()},
                    {{"data_format", c.op().get_string("data_format")}}));
}

}  // namespace

void register_bias_ops(OpRegistry& r) {
  r.op("BiasAdd", HostAccess::kNone)
      .input("value: T")
      .input("bias: T")
      .output("output: T")
      .attr("T: numbertype")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .in_place("value", "output")
      .shape(bias_add_shape)
      .gradient(bias_add_gradient)
      .doc(R"(Adds a bias to each channel.

value has rank 2 or more; its channels are the last axis, or axis 1 with data_format "NCHW". bias is a vector with one
element per channel. The output has the shape of value. Integers wrap around.
Errors: InvalidArgument for other ranks or another number of elements than channels.)");

  r.op("BiasAddGrad", HostAccess::kNone)
      .input("out_backprop: T")
      .output("output: T")
      .attr("T: numbertype")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .shape(bias_add_grad_shape)
      .gradient(bias_add_grad_gradient)
      .doc(R"(Sums over everything but the channels: the gradient of BiasAdd with respect to bias.

out_backprop has rank 2 or more; the output is a vector with one element per channel, the last axis or, with data_format
"NCHW", axis 1. Integers wrap around.)");

  r.finish("bias");
}

}  // namespace treenail
