// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution, full and depthwise, and the two products its gradients are made of.
// Each is linear in both of its operands, so the gradients of all of them are one another. Computed
// in kernels/cpu/convolution.cc, depthwise.cc.
#include <cstdint>
#include <string_view>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/op/window.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

bool is_depthwise(const OpInstance& op) { return op.name().starts_with("Depthwise"); }

int64_t product_or_unknown(int64_t a, int64_t b) {
  return a == kUnknown || b == kUnknown ? kUnknown : checked_product(a, b);
}

// The output of convolving `input` with `filter`, both of rank 4.
PartialShape convolved(const OpInstance& op, const PartialShape& input,
                       const PartialShape& filter) {
  const WindowAttrs w = WindowAttrs::of(op);
  const int64_t channels = input.dim(w.channel_axis()), wanted = filter.dim(2);
  if (channels != kUnknown && wanted != kUnknown && channels != wanted) {
    throw invalid_argument("input depth must equal filter depth: input ", input, " has ", channels,
                           " channels, filter ", filter, " takes ", wanted);
  }
  const WindowAxis rows = w.axis(0, input.dim(w.spatial_axis(0)), filter.dim(0));
  const WindowAxis columns = w.axis(1, input.dim(w.spatial_axis(1)), filter.dim(1));
  const int64_t depth =
      is_depthwise(op) ? product_or_unknown(channels != kUnknown ? channels : wanted, filter.dim(3))
                       : filter.dim(3);
  return w.shape(input.dim(0), rows.output, columns.output, depth);
}

void forward_shape(ShapeContext& c) {
  c.set_output(0, convolved(c.op(), c.with_rank(0, 4), c.with_rank(1, 4)));
}

// Checks that a convolution of these operands gives a gradient of this shape.
void check_gradient_shape(const OpInstance& op, const PartialShape& input,
                          const PartialShape& filter, const PartialShape& gradient) {
  const PartialShape wanted = convolved(op, input, filter);
  if (!wanted.compatible(gradient)) {
    throw invalid_argument("out_backprop has shape ", gradient, ", but convolving ", input,
                           " with filter ", filter, " gives ", wanted);
  }
}

PartialShape rank4_from_value(ShapeContext& c, int i, std::string_view name) {
  const PartialShape shape = extents_from_value(c, i);
  if (shape.rank_known() && shape.rank() != 4) {
    throw invalid_argument(name, " needs 4 elements, got ", shape.rank());
  }
  return shape.rank_known() ? shape : PartialShape::unknown_with_rank(4);
}

void input_gradient_shape(ShapeContext& c) {
  const PartialShape input = rank4_from_value(c, 0, "input_sizes");
  check_gradient_shape(c.op(), input, c.with_rank(1, 4), c.with_rank(2, 4));
  c.set_output(0, input);
}

void filter_gradient_shape(ShapeContext& c) {
  const PartialShape filter = rank4_from_value(c, 1, "filter_sizes");
  check_gradient_shape(c.op(), c.with_rank(0, 4), filter, c.with_rank(2, 4));
  c.set_output(0, filter);
}

// The three ops of a family, called with the attributes of the op at hand.
struct Family {
  GradientContext& c;
  const char *forward, *input, *filter;

  explicit Family(GradientContext& c) : c(c) {
    const bool depthwise = is_depthwise(c.op());
    forward = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
    input = depthwise ? "DepthwiseConv2dNativeBackpropInput" : "Conv2DBackpropInput";
    filter = depthwise ? "DepthwiseConv2dNativeBackpropFilter" : "Conv2DBackpropFilter";
  }
  NamedAttrs attrs() const {
    NamedAttrs list;
    for (const char* name :
         {"strides", "padding", "explicit_paddings", "data_format", "dilations"}) {
      list.emplace_back(name, c.op().attr(name));
    }
    return list;
  }
  Value convolve(Value x, Value w) const { return c.e.call(forward, {x, w}, attrs()); }
  Value to_input(Value sizes, Value w, Value g) const {
    return c.e.call(input, {sizes, w, g}, attrs());
  }
  Value to_filter(Value x, Value sizes, Value g) const {
    return c.e.call(filter, {x, sizes, g}, attrs());
  }
};

void forward_gradient(GradientContext& c) {
  const Family f(c);
  const Value g = c.gradient();
  if (c.needed(0)) c.set(0, f.to_input(c.input_shape_value(0, DType::kInt32), c.input(1), g));
  if (c.needed(1)) c.set(1, f.to_filter(c.input(0), c.input_shape_value(1, DType::kInt32), g));
}

void input_gradient_gradient(GradientContext& c) {
  const Family f(c);
  const Value g = c.gradient();
  if (c.needed(1)) c.set(1, f.to_filter(g, c.input_shape_value(1, DType::kInt32), c.input(2)));
  if (c.needed(2)) c.set(2, f.convolve(g, c.input(1)));
}

void filter_gradient_gradient(GradientContext& c) {
  const Family f(c);
  const Value g = c.gradient();
  if (c.needed(0)) c.set(0, f.to_input(c.input_shape_value(0, DType::kInt32), g, c.input(2)));
  if (c.needed(2)) c.set(2, f.convolve(c.input(0), g));
}

OpDeclaration& attributes(OpDeclaration& op) {
  return op.attr("T: {half, bfloat16, float, double}")
      .attr("strides: list(int)")
      .attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .attr("explicit_paddings: list(int) = []")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .attr("dilations: list(int) = [1, 1, 1, 1]");
}

void declare_forward(OpDeclaration op, const char* doc) {
  op.input("input: T").input("filter: T").output("output: T");
  attributes(op).shape(forward_shape).gradient(forward_gradient, {"input", "filter"}).doc(doc);
}

void declare_input_gradient(OpDeclaration op, const char* doc) {
  op.input("input_sizes: int32").input("filter: T").input("out_backprop: T").output("output: T");
  attributes(op)
      .host("input_sizes")
      .shape(input_gradient_shape)
      .gradient(input_gradient_gradient, {"filter", "out_backprop"})
      .doc(doc);
}

void declare_filter_gradient(OpDeclaration op, const char* doc) {
  op.input("input: T").input("filter_sizes: int32").input("out_backprop: T").output("output: T");
  attributes(op)
      .host("filter_sizes")
      .shape(filter_gradient_shape)
      .gradient(filter_gradient_gradient, {"input", "out_backprop"})
      .doc(doc);
}

}  // namespace

void register_convolution_ops(OpRegistry& r) {
  declare_forward(
      r.op("Conv2D"),
      R"(Convolves images with a bank of filters (a cross-correlation: filters are not flipped).

input is [batch, height, width, in_channels] ("NHWC") or [batch, in_channels, height, width] ("NCHW"); filter is
[filter_height, filter_width, in_channels, out_channels]. strides and dilations have one element per axis of the input, 1
for batch and channels. padding "SAME" pads with zeros so that the output has ceil(size / stride) rows and columns (the
extra one goes behind), "VALID" does not pad, "EXPLICIT" pads by explicit_paddings, two numbers per axis.
Errors: InvalidArgument for other ranks, differing channels, or a window that does not fit.)");

  declare_input_gradient(r.op("Conv2DBackpropInput"),
                         R"(Computes the gradient of Conv2D with respect to its input.

input_sizes is the shape of that input, filter its filter, out_backprop the gradient of its output; the attributes are those
of the Conv2D. Also known as transposed convolution. The output has shape input_sizes.
Errors: InvalidArgument when out_backprop has not the shape that Conv2D would give.)");

  declare_filter_gradient(r.op("Conv2DBackpropFilter"),
                          R"(Computes the gradient of Conv2D with respect to its filter.

input is the input of that Conv2D, filter_sizes the shape of its filter, out_backprop the gradient of its output; the
attributes are those of the Conv2D. The output has shape filter_sizes.
Errors: InvalidArgument when out_backprop has not the shape that Conv2D would give.)");

  declare_forward(r.op("DepthwiseConv2dNative"), R"(Convolves each channel with filters of its own.

filter is [filter_height, filter_width, channels, multiplier]: channel c of the input gives the output channels
c * multiplier ... c * multiplier + multiplier - 1. Layouts, strides, padding and dilations are those of Conv2D.
Errors: InvalidArgument for other ranks, differing channels, or a window that does not fit.)");

  declare_input_gradient(
      r.op("DepthwiseConv2dNativeBackpropInput"),
      R"(Computes the gradient of DepthwiseConv2dNative with respect to its input.

input_sizes is the shape of that input; the attributes are those of the DepthwiseConv2dNative.
Errors: InvalidArgument when out_backprop has not the shape that DepthwiseConv2dNative would give.)");

  declare_filter_gradient(
      r.op("DepthwiseConv2dNativeBackpropFilter"),
      R"(Computes the gradient of DepthwiseConv2dNative with respect to its filter.

filter_sizes is the shape of that filter; the attributes are those of the DepthwiseConv2dNative.
Errors: InvalidArgument when out_backprop has not the shape that DepthwiseConv2dNative would give.)");

  r.finish("convolution");
}

}  // namespace treenail
