// SPDX-License-Identifier: Apache-2.0
// The windows of images as rows of numbers, and the adjoint, which adds them up again. Computed in
// kernels/host/image/patches.cc.
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/op/window.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

PartialShape patches_of(const OpInstance& op, const PartialShape& images) {
  const WindowAttrs w = WindowAttrs::of(op);
  int64_t extents[WindowAttrs::kMost];
  for (int i = 0; i < w.spatial; ++i)
    extents[i] = w.axis(i, images.dim(w.spatial_axis(i)), w.size[i]).output;
  const int64_t channels = images.dim(3), taps = checked_product(w.size[0], w.size[1]);
  return w.shape(images.dim(0), extents,
                 channels == kUnknown ? kUnknown : checked_product(taps, channels));
}

void patches_shape(ShapeContext& c) { c.set_output(0, patches_of(c.op(), c.with_rank(0, 4))); }

void patches_gradient_shape(ShapeContext& c) {
  PartialShape images = extents_from_value(c, 0);
  if (images.rank_known() && images.rank() != 4)
    throw invalid_argument("orig_input_shape needs 4 elements, got ", images.rank());
  if (!images.rank_known()) images = PartialShape::unknown_with_rank(4);
  const PartialShape wanted = patches_of(c.op(), images), grad = c.with_rank(1, 4);
  if (!grad.compatible(wanted)) {
    throw invalid_argument("grad has shape ", grad, ", but the patches of ", images, " have ",
                           wanted);
  }
  c.set_output(0, images);
}

NamedAttrs same_attrs(const GradientContext& c) {
  NamedAttrs list;
  for (const char* name : {"ksizes", "strides", "rates", "padding"})
    list.emplace_back(name, c.op().attr(name));
  return list;
}

void patches_gradient(GradientContext& c) {
  c.set(0,
        c.e.call("ExtractImagePatchesGrad", {c.input_shape_value(0), c.gradient()}, same_attrs(c)));
}

void patches_gradient_gradient(GradientContext& c) {
  if (c.needed(1)) c.set(1, c.e.call("ExtractImagePatches", {c.gradient()}, same_attrs(c)));
}

OpDeclaration& attributes(OpDeclaration& op) {
  return op.attr("ksizes: list(int)")
      .attr("strides: list(int)")
      .attr("rates: list(int)")
      .attr("padding: {'SAME', 'VALID'}");
}

}  // namespace

void register_patches_ops(OpRegistry& r) {
  OpDeclaration patches = r.op("ExtractImagePatches", HostAccess::kNone);
  patches.input("images: T").output("patches: T").attr("T: realnumbertype");
  attributes(patches)
      .shape(patches_shape)
      .gradient(patches_gradient)
      .doc(R"(Puts the pixels of each window of the images side by side.

images is [batch, height, width, channels]; ksizes, strides and rates have one element per axis, 1 for batch and channels:
rows and columns of a window, the step between windows, and between the pixels of a window. patches is [batch, windows down,
windows across, rows * columns * channels], the pixels of a window row by row. padding "SAME" takes zeros from around the
image, as Conv2D does.
Errors: InvalidArgument for another rank, or a window that does not fit.)");

  OpDeclaration gradient = r.op("ExtractImagePatchesGrad", HostAccess::kNone);
  gradient.input("orig_input_shape: int64")
      .input("grad: T")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}");
  attributes(gradient)
      .host("orig_input_shape")
      .shape(patches_gradient_shape)
      .gradient(patches_gradient_gradient)
      .doc(R"(Adds the patches of ExtractImagePatches back to where they come from: its gradient.

orig_input_shape is the shape of the images, grad [batch, windows down, windows across, rows * columns * channels]. An element
of the output is the sum over the windows that contain it. float16 and bfloat16 are summed in float32.
Errors: InvalidArgument when grad has not the shape of the patches.)");

  r.finish("patches");
}

}  // namespace treenail
