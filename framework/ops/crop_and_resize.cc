// SPDX-License-Identifier: Apache-2.0
// Boxes cut out of images and brought to one size, with gradients for images and boxes. Computed in
// kernels/cpu/image/crop_and_resize.cc.
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

// The number of boxes: inputs i (boxes, [n, 4]) and i + 1 (box_ind, [n]).
int64_t count_boxes(const ShapeContext& c, int i) {
  const PartialShape boxes = c.with_rank(i, 2);
  if (boxes[1] != kUnknown && boxes[1] != 4)
    throw invalid_argument("boxes must have shape [num_boxes, 4], got ", boxes);
  return ShapeContext::merge_dim(boxes[0], c.with_rank(i + 1, 1)[0],
                                 "the numbers of boxes and of box_ind");
}

void check_images(const PartialShape& images) {
  if (images[1] == 0 || images[2] == 0)
    throw invalid_argument("image must be of non-zero size, got ", images);
}

void crop_shape(ShapeContext& c) {
  const PartialShape images = c.with_rank(0, 4);
  check_images(images);
  const int64_t boxes = count_boxes(c, 1), size = c.with_rank(3, 1)[0];
  if (size != kUnknown && size != 2)
    throw invalid_argument("crop_size needs 2 elements, got ", size);
  int64_t extents[2] = {kUnknown, kUnknown};
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<int64_t> extent = known_element(c, 3, i);
    if (!extent) continue;
    extents[i] = *extent;
    if (extents[i] < 1)
      throw invalid_argument("crop dimensions must be positive: crop_size[", i, "] = ", extents[i]);
  }
  c.set_output(0, PartialShape({boxes, extents[0], extents[1], images[3]}));
}

// grads [num_boxes, crop height, crop width, channels] against the boxes and the images.
void check_grads(const PartialShape& grads, int64_t boxes, const PartialShape& images) {
  ShapeContext::merge_dim(grads[0], boxes, "the numbers of grads and of boxes");
  ShapeContext::merge_dim(grads[3], images[3], "the channels of grads and of the image");
  if (grads[1] == 0 || grads[2] == 0)
    throw invalid_argument("crop dimensions must be positive, got grads ", grads);
  check_images(images);
}

void image_gradient_shape(ShapeContext& c) {
  PartialShape images = extents_from_value(c, 3);
  if (images.rank_known() && images.rank() != 4)
    throw invalid_argument("image_size needs 4 elements, got ", images.rank());
  if (!images.rank_known()) images = PartialShape::unknown_with_rank(4);
  check_grads(c.with_rank(0, 4), count_boxes(c, 1), images);
  c.set_output(0, images);
}

void boxes_gradient_shape(ShapeContext& c) {
  const int64_t boxes = count_boxes(c, 2);
  check_grads(c.with_rank(0, 4), boxes, c.with_rank(1, 4));
  c.set_output(0, PartialShape({boxes, 4}));
}

bool real(DType t) { return t == DType::kFloat16 || t == DType::kFloat32 || t == DType::kFloat64; }
bool interpolates(const GradientContext& c) { return c.op().get_string("method") == "bilinear"; }

NamedAttrs method_of(const GradientContext& c) { return {{"method", c.op().attr("method")}}; }

void crop_gradient(GradientContext& c) {
  const Value g = c.gradient();
  if (c.needed(0) && real(c.input_dtype(0))) {
    NamedAttrs attrs = method_of(c);
    attrs.emplace_back("T", c.input_dtype(0));
    const Value size = c.input_shape_value(0, DType::kInt32);
    c.set(0, c.e.call("CropAndResizeGradImage", {g, c.input(1), c.input(2), size}, attrs));
  }
  // The nearest pixel does not change with a small move of the box.
  if (c.needed(1) && interpolates(c))
    c.set(1, c.e.call("CropAndResizeGradBoxes", {g, c.input(0), c.input(1), c.input(2)}));
}

// Linear in grads; in the boxes as CropAndResize is, with what comes in as the image.
void image_gradient_gradient(GradientContext& c) {
  const Value g = c.gradient();
  if (c.needed(0)) {
    const Value shape = c.input_shape_value(0, DType::kInt32);
    const Value size = c.e.call(
        "StridedSlice", {shape, int_vector(c.e, {1}), int_vector(c.e, {3}), int_vector(c.e, {1})});
    c.set(0, c.e.call("CropAndResize", {g, c.input(1), c.input(2), size}, method_of(c)));
  }
  if (c.needed(1) && interpolates(c))
    c.set(1, c.e.call("CropAndResizeGradBoxes", {c.input(0), g, c.input(1), c.input(2)}));
}

}  // namespace

void register_crop_and_resize_ops(OpRegistry& r) {
  r.op("CropAndResize", HostAccess::kNone)
      .input("image: T")
      .input("boxes: float")
      .input("box_ind: int32")
      .input("crop_size: int32")
      .output("crops: float")
      .attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
      .attr("method: {'bilinear', 'nearest'} = 'bilinear'")
      .attr("extrapolation_value: float = 0")
      .host("crop_size")
      .shape(crop_shape)
      .gradient(crop_gradient, {"image", "boxes", "box_ind"})
      .doc(R"(Cuts boxes out of images and resizes each to crop_size.

image is [batch, height, width, channels]; boxes is [num_boxes, 4]: y1, x1, y2, x2, where 0 is the centre of the first row or
column and 1 that of the last; box_ind [num_boxes] says which image of the batch a box is cut from; crop_size is the height
and width of the crops, [num_boxes, crop height, crop width, channels]. y1 > y2 turns a crop upside down. A place outside the
image gives extrapolation_value. A crop of one row or column is taken from the middle of the box.
Errors: InvalidArgument for a box_ind outside [0, batch), an empty image, a crop_size that is not positive.)");

  r.op("CropAndResizeGradImage", HostAccess::kNone)
      .input("grads: float")
      .input("boxes: float")
      .input("box_ind: int32")
      .input("image_size: int32")
      .output("output: T")
      .attr("T: {half, float, double}")
      .attr("method: {'bilinear', 'nearest'} = 'bilinear'")
      .host("image_size")
      .shape(image_gradient_shape)
      .gradient(image_gradient_gradient, {"grads", "boxes", "box_ind"})
      .doc(R"(Computes the gradient of CropAndResize with respect to its image.

grads is the gradient of the crops, image_size the shape of the image; boxes and box_ind are those of the CropAndResize.
float16 is summed in float32.
Errors: InvalidArgument for a box_ind outside [0, batch) or shapes that do not fit.)");

  r.op("CropAndResizeGradBoxes", HostAccess::kNone)
      .input("grads: float")
      .input("image: T")
      .input("boxes: float")
      .input("box_ind: int32")
      .output("output: float")
      .attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
      .attr("method: {'bilinear'} = 'bilinear'")
      .shape(boxes_gradient_shape)
      .not_differentiable()
      .doc(
          R"(Computes the gradient of a bilinear CropAndResize with respect to its boxes, [num_boxes, 4].

grads is the gradient of the crops; image, boxes and box_ind are those of the CropAndResize. It is not differentiated further.
Errors: InvalidArgument for a box_ind outside [0, batch) or shapes that do not fit.)");

  r.finish("crop_and_resize");
}

}  // namespace treenail
