// SPDX-License-Identifier: Apache-2.0
// Maximum and average over sliding windows of images and volumes, and the ops their gradients are
// made of. Computed in kernels/cpu/pooling/pooling.cc.
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

WindowAttrs window_attrs(const OpInstance& op) {
  const WindowAttrs w = WindowAttrs::of(op);
  for (int i = 0; i < w.spatial; ++i) {
    // A window of padding alone has no maximum and no average.
    if (w.pad[i][0] >= w.size[i] || w.pad[i][1] >= w.size[i]) {
      throw invalid_argument("explicit_paddings must be smaller than the window, got ", w.pad[i][0],
                             " and ", w.pad[i][1], " for a window of ", w.size[i]);
    }
  }
  return w;
}

PartialShape pooled(const OpInstance& op, const PartialShape& input) {
  const WindowAttrs w = window_attrs(op);
  int64_t extents[WindowAttrs::kMost];
  for (int i = 0; i < w.spatial; ++i)
    extents[i] = w.axis(i, input.dim(w.spatial_axis(i)), w.size[i]).output;
  return w.shape(input.dim(0), extents, input.dim(w.channel_axis()));
}

// Input i, of the rank of the op's images.
PartialShape images(const ShapeContext& c, int i) {
  return c.with_rank(i, WindowAttrs::of(c.op()).rank());
}

PartialShape checked(const PartialShape& given, const PartialShape& wanted, std::string_view name) {
  if (!given.compatible(wanted)) {
    throw invalid_argument(name, " has shape ", given, ", but the pooling gives ", wanted);
  }
  return ShapeContext::merge(given, wanted, name);
}

void pool_shape(ShapeContext& c) { c.set_output(0, pooled(c.op(), images(c, 0))); }

void pool_argmax_shape(ShapeContext& c) {
  pool_shape(c);
  c.set_output(1, pooled(c.op(), images(c, 0)));
}

void max_pool_grad_shape(ShapeContext& c) {
  const PartialShape input = images(c, 0), output = pooled(c.op(), input);
  checked(images(c, 1), output, "orig_output");
  checked(images(c, 2), output, "grad");
  c.set_output(0, input);
}

void max_pool_grad_grad_shape(ShapeContext& c) {
  const PartialShape input = images(c, 0), output = pooled(c.op(), input);
  if (!images(c, 2).compatible(input)) {
    throw invalid_argument("grad has shape ", c.input(2), ", needed is that of orig_input, ",
                           input);
  }
  c.set_output(0, checked(images(c, 1), output, "orig_output"));
}

void avg_pool_grad_shape(ShapeContext& c) {
  const int rank = WindowAttrs::of(c.op()).rank();
  PartialShape input = extents_from_value(c, 0);
  if (input.rank_known() && input.rank() != rank) {
    throw invalid_argument("orig_input_shape needs ", rank, " elements, got ", input.rank());
  }
  if (!input.rank_known()) input = PartialShape::unknown_with_rank(rank);
  checked(images(c, 1), pooled(c.op(), input), "grad");
  c.set_output(0, input);
}

NamedAttrs same_attrs(const GradientContext& c) {
  NamedAttrs list;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings", "data_format"}) {
    if (c.op().def().attr_index(name) >= 0) list.emplace_back(name, c.op().attr(name));
  }
  return list;
}

// The op of this name for images, or its relative for volumes.
std::string relative(const GradientContext& c, const char* images, const char* volumes) {
  return c.op().name().find("3D") != std::string::npos ? volumes : images;
}

void max_pool_gradient(GradientContext& c) {
  c.set(0, c.e.call(relative(c, "MaxPoolGrad", "MaxPool3DGrad"),
                    {c.input(0), c.output(0), c.gradient()}, same_attrs(c)));
}

// Where the maxima lie does not move under small changes: input and output have the derivative 0.
void no_gradient_of_places(GradientContext& c) {
  for (const int i : {0, 1}) {
    if (c.needed(i)) c.set(i, c.e.zeros_like(c.input(i)));
  }
}

void max_pool_grad_gradient(GradientContext& c) {
  no_gradient_of_places(c);
  if (c.needed(2)) {
    c.set(2, c.e.call(relative(c, "MaxPoolGradGrad", "MaxPool3DGradGrad"),
                      {c.input(0), c.input(1), c.gradient()}, same_attrs(c)));
  }
}

void max_pool_grad_grad_gradient(GradientContext& c) {
  no_gradient_of_places(c);
  if (c.needed(2))
    c.set(2, c.e.call(relative(c, "MaxPoolGrad", "MaxPool3DGrad"),
                      {c.input(0), c.input(1), c.gradient()}, same_attrs(c)));
}

void avg_pool_gradient(GradientContext& c) {
  c.set(0, c.e.call(relative(c, "AvgPoolGrad", "AvgPool3DGrad"),
                    {c.input_shape_value(0, DType::kInt32), c.gradient()}, same_attrs(c)));
}

void avg_pool_grad_gradient(GradientContext& c) {
  if (c.needed(1))
    c.set(1, c.e.call(relative(c, "AvgPool", "AvgPool3D"), {c.gradient()}, same_attrs(c)));
}

OpDeclaration& attributes(OpDeclaration& op, bool volumes) {
  op.attr("T: {half, bfloat16, float, double}").attr("ksize: list(int)").attr("strides: list(int)");
  if (volumes) {
    return op.attr("padding: {'SAME', 'VALID'}").attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'");
  }
  return op.attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .attr("explicit_paddings: list(int) = []")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'");
}

void declare_max_pool(OpDeclaration op, bool volumes, const char* doc) {
  op.input("input: T").output("output: T");
  attributes(op, volumes)
      .shape(pool_shape)
      .gradient(max_pool_gradient, {"input", "output"})
      .doc(doc);
}

void declare_max_pool_grad(OpDeclaration op, bool volumes, const char* doc) {
  op.input("orig_input: T").input("orig_output: T").input("grad: T").output("output: T");
  attributes(op, volumes)
      .shape(max_pool_grad_shape)
      .gradient(max_pool_grad_gradient, {"orig_input", "orig_output"})
      .doc(doc);
}

void declare_max_pool_grad_grad(OpDeclaration op, bool volumes, const char* doc) {
  op.input("orig_input: T").input("orig_output: T").input("grad: T").output("output: T");
  attributes(op, volumes)
      .shape(max_pool_grad_grad_shape)
      .gradient(max_pool_grad_grad_gradient, {"orig_input", "orig_output"})
      .doc(doc);
}

void declare_avg_pool(OpDeclaration op, bool volumes, const char* doc) {
  op.input(volumes ? "input: T" : "value: T").output("output: T");
  attributes(op, volumes).shape(pool_shape).gradient(avg_pool_gradient).doc(doc);
}

void declare_avg_pool_grad(OpDeclaration op, bool volumes, const char* doc) {
  op.input("orig_input_shape: int32").input("grad: T").output("output: T");
  attributes(op, volumes)
      .host("orig_input_shape")
      .shape(avg_pool_grad_shape)
      .gradient(avg_pool_grad_gradient)
      .doc(doc);
}

void declare_image_pools(OpRegistry& r) {
  declare_max_pool(r.op("MaxPool", HostAccess::kNone), false,
                   R"(Takes the maximum of each window of the images.

input is [batch, height, width, channels] ("NHWC") or [batch, channels, height, width] ("NCHW"); ksize and strides have one
element per axis of the input, 1 for batch and channels. padding is that of Conv2D; padding takes no part in a maximum. A
window with a NaN gives NaN.
Errors: InvalidArgument for another rank, or a window that does not fit.)");

  declare_max_pool_grad(r.op("MaxPoolGrad", HostAccess::kNone), false,
                        R"(Computes the gradient of MaxPool.

orig_input and orig_output are its input and output, grad the gradient of its output. Each element of grad goes to the first
element of its window (rows first) that equals the maximum, or is NaN where the maximum is.)");

  declare_max_pool_grad_grad(
      r.op("MaxPoolGradGrad", HostAccess::kNone), false,
      R"(Picks, for each window of a MaxPool, the element of grad where that window has its first maximum.

orig_input and orig_output are input and output of the MaxPool; grad has the shape of orig_input: it is the gradient of what
MaxPoolGrad gives.)");

  declare_avg_pool(r.op("AvgPool", HostAccess::kNone), false,
                   R"(Takes the average of each window of the images.

value is [batch, height, width, channels] ("NHWC") or [batch, channels, height, width] ("NCHW"); ksize and strides have one
element per axis, 1 for batch and channels. padding is that of Conv2D; an average is over the elements inside the image.
Errors: InvalidArgument for another rank, or a window that does not fit.)");

  declare_avg_pool_grad(r.op("AvgPoolGrad", HostAccess::kNone), false,
                        R"(Computes the gradient of AvgPool.

orig_input_shape is the shape of its input, grad the gradient of its output: each element of grad is shared out evenly over
its window.)");
}

void declare_volume_pools(OpRegistry& r) {
  declare_max_pool(r.op("MaxPool3D", HostAccess::kNone), true,
                   R"(Takes the maximum of each window of the volumes.

input is [batch, depth, height, width, channels] ("NDHWC") or [batch, channels, depth, height, width] ("NCDHW"); ksize and
strides have one element per axis of the input, 1 for batch and channels. padding is "SAME" or "VALID" as in Conv3D and takes
no part in a maximum. A window with a NaN gives NaN.
Errors: InvalidArgument for another rank, or a window that does not fit.)");

  declare_max_pool_grad(r.op("MaxPool3DGrad", HostAccess::kNone), true,
                        R"(Computes the gradient of MaxPool3D.

orig_input and orig_output are its input and output, grad the gradient of its output. Each element of grad goes to the first
element of its window (planes first, then rows) that equals the maximum, or is NaN where the maximum is.)");

  declare_max_pool_grad_grad(
      r.op("MaxPool3DGradGrad", HostAccess::kNone), true,
      R"(Picks, for each window of a MaxPool3D, the element of grad where that window has its first maximum.

orig_input and orig_output are input and output of the MaxPool3D; grad has the shape of orig_input: it is the gradient of
what MaxPool3DGrad gives.)");

  declare_avg_pool(r.op("AvgPool3D", HostAccess::kNone), true,
                   R"(Takes the average of each window of the volumes.

input is [batch, depth, height, width, channels] ("NDHWC") or [batch, channels, depth, height, width] ("NCDHW"); ksize and
strides have one element per axis, 1 for batch and channels. padding is "SAME" or "VALID" as in Conv3D; an average is over the
elements inside the volume.
Errors: InvalidArgument for another rank, or a window that does not fit.)");

  declare_avg_pool_grad(r.op("AvgPool3DGrad", HostAccess::kNone), true,
                        R"(Computes the gradient of AvgPool3D.

orig_input_shape is the shape of its input, grad the gradient of its output: each element of grad is shared out evenly over
its window.)");
}

}  // namespace

void register_pooling_ops(OpRegistry& r) {
  declare_image_pools(r);
  declare_volume_pools(r);

  r.op("MaxPoolWithArgmax", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .output("argmax: Targmax")
      .attr("T: {half, bfloat16, float, double}")
      .attr("ksize: list(int)")
      .attr("strides: list(int)")
      .attr("padding: {'SAME', 'VALID'}")
      .attr("Targmax: {int32, int64} = int64")
      .attr("include_batch_in_index: bool = false")
      .shape(pool_argmax_shape)
      .gradient(max_pool_gradient, {"input", "output"})
      .doc(R"(Takes the maximum of each window of the images and where it lies.

input is [batch, height, width, channels]. argmax holds the flattened position (y * width + x) * channels + c of each
window's first maximum, or, with include_batch_in_index, ((b * height + y) * width + x) * channels + c. Positions that do
not fit into Targmax are an error.
Errors: InvalidArgument as for MaxPool.)");

  r.finish("pooling");
}

}  // namespace treenail
