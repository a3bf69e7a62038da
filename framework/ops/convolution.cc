// SPDX-License-Identifier: Apache-2.0
// Convolution in two dimensions, full and depthwise, and in three, and the two products its
// gradients are made of.
// Each is linear in both of its operands, so the gradients of all of them are one another. Computed
// in kernels/cpu/convolution/convolution.cc, depthwise.cc.
#include <cstdint>
#include <string>
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

// Ranks of images and filters.
int rank_of(const OpInstance& op) { return WindowAttrs::of(op).rank(); }

// The output of convolving `input` with `filter`, both of the op's rank.
PartialShape convolved(const OpInstance& op, const PartialShape& input,
                       const PartialShape& filter) {
  const WindowAttrs w = WindowAttrs::of(op);
  const int64_t channels = input.dim(w.channel_axis()), wanted = filter.dim(w.spatial);
  if (channels != kUnknown && wanted != kUnknown && channels != wanted) {
    throw invalid_argument("input depth must equal filter depth: input ", input, " has ", channels,
                           " channels, filter ", filter, " takes ", wanted);
  }
  int64_t extents[WindowAttrs::kMost];
  for (int i = 0; i < w.spatial; ++i)
    extents[i] = w.axis(i, input.dim(w.spatial_axis(i)), filter.dim(i)).output;
  const int64_t filters = filter.dim(w.spatial + 1);
  const int64_t depth = is_depthwise(op)
                            ? product_or_unknown(channels != kUnknown ? channels : wanted, filters)
                            : filters;
  return w.shape(input.dim(0), extents, depth);
}

void forward_shape(ShapeContext& c) {
  const int rank = rank_of(c.op());
  c.set_output(0, convolved(c.op(), c.with_rank(0, rank), c.with_rank(1, rank)));
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

PartialShape ranked_from_value(ShapeContext& c, int i, int rank, std::string_view name) {
  const PartialShape shape = extents_from_value(c, i);
  if (shape.rank_known() && shape.rank() != rank) {
    throw invalid_argument(name, " needs ", rank, " elements, got ", shape.rank());
  }
  return shape.rank_known() ? shape : PartialShape::unknown_with_rank(rank);
}

void input_gradient_shape(ShapeContext& c) {
  const int rank = rank_of(c.op());
  const PartialShape input = ranked_from_value(c, 0, rank, "input_sizes");
  const PartialShape filter = c.with_rank(1, rank), gradient = c.with_rank(2, rank);
  check_gradient_shape(c.op(), input, filter, gradient);
  // Batch and channels follow from the operands.
  const WindowAttrs w = WindowAttrs::of(c.op());
  PartialShape known = input;
  if (known.dim(0) == kUnknown) known = known.with_dim(0, gradient.dim(0));
  const int channels = w.channel_axis();
  if (known.dim(channels) == kUnknown) known = known.with_dim(channels, filter.dim(w.spatial));
  c.set_output(0, known);
}

void filter_gradient_shape(ShapeContext& c) {
  const int rank = rank_of(c.op());
  const PartialShape filter = ranked_from_value(c, 1, rank, "filter_sizes");
  check_gradient_shape(c.op(), c.with_rank(0, rank), filter, c.with_rank(2, rank));
  c.set_output(0, filter);
}

// The three ops of a family, called with the attributes of the op at hand.
struct Family {
  GradientContext& c;
  std::string forward, input, filter;

  explicit Family(GradientContext& c) : c(c) {
    forward = is_depthwise(c.op())                  ? "DepthwiseConv2dNative"
              : c.op().name().starts_with("Conv3D") ? "Conv3D"
                                                    : "Conv2D";
    input = forward + "BackpropInput";
    filter = forward + "BackpropFilter";
  }
  NamedAttrs attrs() const {
    NamedAttrs list;
    for (const char* name :
         {"strides", "padding", "explicit_paddings", "data_format", "dilations"}) {
      if (c.op().def().attr_index(name) >= 0) list.emplace_back(name, c.op().attr(name));
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

// Of the direct sum, whatever algorithm computes it: each pixel of the convolution's output, or of
// its gradient, takes part once per tap and channel that it meets.
double flops_of(const OpInstance& op, const Shape& pixels, const Shape& filter) {
  const int rank = filter.rank();
  const int64_t met =
      is_depthwise(op) ? filter.dim(rank - 2) * filter.dim(rank - 1) : filter.dim(rank - 1);
  if (met == 0) return 0;
  const int64_t taps = filter.num_elements() / met;
  return 2.0 * static_cast<double>(pixels.num_elements()) * static_cast<double>(taps);
}

double forward_flops(const OpInstance& op, std::span<const Shape> inputs,
                     std::span<const Shape> outputs) {
  return flops_of(op, outputs[0], inputs[1]);
}

double input_gradient_flops(const OpInstance& op, std::span<const Shape> inputs,
                            std::span<const Shape>) {
  return flops_of(op, inputs[2], inputs[1]);
}

double filter_gradient_flops(const OpInstance& op, std::span<const Shape> inputs,
                             std::span<const Shape> outputs) {
  return flops_of(op, inputs[2], outputs[0]);
}

OpDeclaration& attributes(OpDeclaration& op, int spatial) {
  op.attr("T: {half, bfloat16, float, double}").attr("strides: list(int)");
  if (spatial == 3) {
    return op.attr("padding: {'SAME', 'VALID'}")
        .attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
        .attr("dilations: list(int) = [1, 1, 1, 1, 1]");
  }
  return op.attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .attr("explicit_paddings: list(int) = []")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .attr("dilations: list(int) = [1, 1, 1, 1]");
}

void declare_forward(OpDeclaration op, const char* doc, int spatial = 2) {
  op.input("input: T").input("filter: T").output("output: T");
  attributes(op, spatial)
      .shape(forward_shape)
      .flops(forward_flops)
      .gradient(forward_gradient, {"input", "filter"})
      .doc(doc);
}

void declare_input_gradient(OpDeclaration op, const char* doc, int spatial = 2) {
  op.input("input_sizes: int32").input("filter: T").input("out_backprop: T").output("output: T");
  attributes(op, spatial)
      .host("input_sizes")
      .shape(input_gradient_shape)
      .flops(input_gradient_flops)
      .gradient(input_gradient_gradient, {"filter", "out_backprop"})
      .doc(doc);
}

void declare_filter_gradient(OpDeclaration op, const char* doc, int spatial = 2) {
  op.input("input: T").input("filter_sizes: int32").input("out_backprop: T").output("output: T");
  attributes(op, spatial)
      .host("filter_sizes")
      .shape(filter_gradient_shape)
      .flops(filter_gradient_flops)
      .gradient(filter_gradient_gradient, {"input", "out_backprop"})
      .doc(doc);
}

}  // namespace

void register_convolution_ops(OpRegistry& r) {
  declare_forward(
      r.op("Conv2D", HostAccess::kNone),
      R"(Convolves images with a bank of filters (a cross-correlation: filters are not flipped).

input is [batch, height, width, in_channels] ("NHWC") or [batch, in_channels, height, width] ("NCHW"); filter is
[filter_height, filter_width, in_channels, out_channels]. strides and dilations have one element per axis of the input, 1
for batch and channels. padding "SAME" pads with zeros so that the output has ceil(size / stride) rows and columns (the
extra one goes behind), "VALID" does not pad, "EXPLICIT" pads by explicit_paddings, two numbers per axis.
Errors: InvalidArgument for other ranks, differing channels, or a window that does not fit.)");

  declare_input_gradient(r.op("Conv2DBackpropInput", HostAccess::kNone),
                         R"(Computes the gradient of Conv2D with respect to its input.

input_sizes is the shape of that input, filter its filter, out_backprop the gradient of its output; the attributes are those
of the Conv2D. Also known as transposed convolution. The output has shape input_sizes.
Errors: InvalidArgument when out_backprop has not the shape that Conv2D would give.)");

  declare_filter_gradient(r.op("Conv2DBackpropFilter", HostAccess::kNone),
                          R"(Computes the gradient of Conv2D with respect to its filter.

input is the input of that Conv2D, filter_sizes the shape of its filter, out_backprop the gradient of its output; the
attributes are those of the Conv2D. The output has shape filter_sizes.
Errors: InvalidArgument when out_backprop has not the shape that Conv2D would give.)");

  declare_forward(r.op("DepthwiseConv2dNative", HostAccess::kNone),
                  R"(Convolves each channel with filters of its own.

filter is [filter_height, filter_width, channels, multiplier]: channel c of the input gives the output channels
c * multiplier ... c * multiplier + multiplier - 1. Layouts, strides, padding and dilations are those of Conv2D.
Errors: InvalidArgument for other ranks, differing channels, or a window that does not fit.)");

  declare_input_gradient(
      r.op("DepthwiseConv2dNativeBackpropInput", HostAccess::kNone),
      R"(Computes the gradient of DepthwiseConv2dNative with respect to its input.

input_sizes is the shape of that input; the attributes are those of the DepthwiseConv2dNative.
Errors: InvalidArgument when out_backprop has not the shape that DepthwiseConv2dNative would give.)");

  declare_filter_gradient(
      r.op("DepthwiseConv2dNativeBackpropFilter", HostAccess::kNone),
      R"(Computes the gradient of DepthwiseConv2dNative with respect to its filter.

filter_sizes is the shape of that filter; the attributes are those of the DepthwiseConv2dNative.
Errors: InvalidArgument when out_backprop has not the shape that DepthwiseConv2dNative would give.)");

  declare_forward(
      r.op("Conv3D", HostAccess::kNone),
      R"(Convolves volumes with a bank of filters (a cross-correlation: filters are not flipped).

input is [batch, depth, height, width, in_channels] ("NDHWC") or [batch, in_channels, depth, height, width] ("NCDHW");
filter is [filter_depth, filter_height, filter_width, in_channels, out_channels]. strides and dilations have one element
per axis of the input, 1 for batch and channels; padding is "SAME" or "VALID" as in Conv2D.
Errors: InvalidArgument for other ranks, differing channels, or a window that does not fit.)",
      3);

  declare_input_gradient(r.op("Conv3DBackpropInput", HostAccess::kNone),
                         R"(Computes the gradient of Conv3D with respect to its input.

input_sizes is the shape of that input, filter its filter, out_backprop the gradient of its output; the attributes are those
of the Conv3D. Also known as transposed convolution. The output has shape input_sizes.
Errors: InvalidArgument when out_backprop has not the shape that Conv3D would give.)",
                         3);

  declare_filter_gradient(r.op("Conv3DBackpropFilter", HostAccess::kNone),
                          R"(Computes the gradient of Conv3D with respect to its filter.

input is the input of that Conv3D, filter_sizes the shape of its filter, out_backprop the gradient of its output; the
attributes are those of the Conv3D. The output has shape filter_sizes.
Errors: InvalidArgument when out_backprop has not the shape that Conv3D would give.)",
                          3);

  r.finish("convolution");
}

}  // namespace treenail
