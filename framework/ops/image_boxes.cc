// SPDX-License-Identifier: Apache-2.0
// Boxes in images: choosing among overlapping ones, drawing them, cutting random ones that keep
// them. Computed in kernels/host/image/image_boxes.cc and image_crop.cc.
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

PartialShape with_coordinates(const PartialShape& boxes, const char* wanted) {
  const int last = boxes.rank() - 1;
  if (boxes[last] != kUnknown && boxes[last] != 4)
    throw invalid_argument("boxes must have shape ", wanted, ", got ", boxes);
  return boxes;
}

void suppression_shape(ShapeContext& c) {
  const PartialShape boxes = with_coordinates(c.with_rank(0, 2), "[num_boxes, 4]");
  ShapeContext::merge_dim(boxes[0], c.with_rank(1, 1)[0], "the numbers of boxes and of scores");
  check_positions_fit(c.op().output_type(0), boxes[0], "the list of boxes");
  for (int i = 2; i < 5; ++i) c.with_rank(i, 0);
  c.set_output(0, PartialShape({kUnknown}));
}

void draw_shape(ShapeContext& c) {
  const PartialShape images = c.with_rank(0, 4);
  const PartialShape boxes = with_coordinates(c.with_rank(1, 3), "[batch, num_boxes, 4]");
  ShapeContext::merge_dim(images[0], boxes[0], "the batches of images and of boxes");
  const PartialShape colors = c.with_rank(2, 2);
  if (colors[0] == 0) throw invalid_argument("colors must hold one color at least, got ", colors);
  if (colors[1] != kUnknown && images[3] != kUnknown && colors[1] < images[3]) {
    throw invalid_argument("colors has ", colors[1], " channels, images, ", images, ", has ",
                           images[3]);
  }
  c.set_output(0, images);
}

// Two numbers, the first not above the second and positive.
void check_range(const OpInstance& op, const char* name, double most) {
  const std::vector<double>& range = op.get<std::vector<double>>(name);
  const bool fits = range.size() == 2 && range[0] > 0 && range[0] <= range[1] && range[1] <= most;
  if (!fits) {
    throw invalid_argument(name, " must be two numbers, 0 < first <= second",
                           most < 2 ? " <= 1, got " : ", got ", to_text(op.attr(name)));
  }
}

void sample_shape(ShapeContext& c) {
  constexpr double kMost = 1e9;
  check_range(c.op(), "aspect_ratio_range", kMost);
  check_range(c.op(), "area_range", 1);
  const int64_t attempts = c.op().get_int("max_attempts");
  if (attempts < 1 || attempts > INT32_MAX)
    throw invalid_argument("max_attempts must be between 1 and ", INT32_MAX, ", got ", attempts);
  const PartialShape size = c.with_rank(0, 1);
  if (size[0] != kUnknown && size[0] != 3)
    throw invalid_argument("image_size needs 3 elements, height, width and channels, got ",
                           size[0]);
  with_coordinates(c.with_rank(1, 3), "[batch, num_boxes, 4]");
  c.with_rank(2, 0);
  c.set_output(0, PartialShape({3}));
  c.set_output(1, PartialShape({3}));
  c.set_output(2, PartialShape({1, 1, 4}));
}

}  // namespace

void register_image_boxes_ops(OpRegistry& r) {
  r.op("NonMaxSuppression", HostAccess::kNone)
      .input("boxes: T")
      .input("scores: T")
      .input("max_output_size: int32")
      .input("iou_threshold: T_threshold")
      .input("score_threshold: T_threshold")
      .output("selected_indices: int32")
      .attr("T: {half, float} = float")
      .attr("T_threshold: {half, float} = float")
      .shape(suppression_shape)
      .data_dependent_shape()
      .not_differentiable()
      .doc(R"(Chooses boxes by descending score that overlap no better one too much.

boxes is [num_boxes, 4], two opposite corners y1, x1, y2, x2 in any order and unit; scores is [num_boxes]. A box is left out
when its score is not above score_threshold, or when the area that it shares with a chosen box is more than iou_threshold of
the area that they cover together. Of equal scores the lower index comes first. selected_indices holds max_output_size
numbers of boxes at most, the best first.
Errors: InvalidArgument for a negative max_output_size or an iou_threshold outside [0, 1].)");

  r.op("DrawBoundingBoxes", HostAccess::kNone)
      .input("images: T")
      .input("boxes: float")
      .input("colors: float")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double} = float")
      .shape(draw_shape)
      .not_differentiable()
      .doc(R"(Draws the outlines of boxes into images.

images is [batch, height, width, channels]; boxes is [batch, num_boxes, 4]: y_min, x_min, y_max, x_max, where 0 is the first
and 1 the last row or column; colors is [n, channels or more]: box i gets color i modulo n. What lies outside the image is not
drawn, nor a box that is not a number or upside down.
Errors: InvalidArgument for other shapes or too few channels of colors.)");

  r.op("SampleDistortedBoundingBox", HostAccess::kNone)
      .input("image_size: T")
      .input("bounding_boxes: float")
      .input("min_object_covered: float")
      .output("begin: T")
      .output("size: T")
      .output("bboxes: float")
      .attr("T: {uint8, int8, int16, int32, int64}")
      .attr("seed: int = 0")
      .attr("seed2: int = 0")
      .attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .attr("area_range: list(float) = [0.05, 1.0]")
      .attr("max_attempts: int = 100")
      .attr("use_image_if_no_bounding_boxes: bool = false")
      .random()
      .shape(sample_shape)
      .not_differentiable()
      .doc(R"(Chooses a random part of an image that keeps enough of one of its boxes.

image_size is height, width and channels; bounding_boxes is [batch, num_boxes, 4]: y_min, x_min, y_max, x_max in fractions of
height and width. The part has a width-to-height ratio from aspect_ratio_range, an area that is a fraction from area_range of
the image's, and covers the fraction min_object_covered of some box. begin and size (whose last elements are 0 and -1) are for
Slice, bboxes [1, 1, 4] for DrawBoundingBoxes. After max_attempts tries it is the whole image.
use_image_if_no_bounding_boxes: the image counts as the box where there is none.

seed, seed2: as for RandomUniform; Philox4x32-10.
Errors: InvalidArgument for an empty image, boxes outside [0, 1] or upside down, no box where one is needed, ranges that are
none.)");

  r.finish("image_boxes");
}

}  // namespace treenail
