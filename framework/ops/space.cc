// SPDX-License-Identifier: Apache-2.0
// Spatial axes traded for batch or depth: blocks of neighbours become entries of another axis, and
// back.
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

int64_t matrix_element(const Tensor& m, int64_t i) {
  return m.dtype() == DType::kInt32 ? m.data<int32_t>()[i] : m.data<int64_t>()[i];
}

// What both batch ops check: block_shape (input 1) is a vector of m sizes, borders (input 2) an [m,
// 2] matrix. Gives the output with all extents unknown that are not known yet, or nothing when it
// is complete already.
struct BlockInputs {
  PartialShape input;
  std::vector<int64_t> block;
  const Tensor* borders = nullptr;  // null: the extents of the block axes are not known
  bool known = false;               // the block and the input's rank
};

BlockInputs block_inputs(ShapeContext& c, const char* borders_name) {
  BlockInputs b;
  const int64_t m = c.with_rank(1, 1)[0];
  const PartialShape borders = c.with_rank(2, 2);
  if (borders[1] != kUnknown && borders[1] != 2)
    throw invalid_argument(borders_name, " must have shape [m, 2], got ", borders);
  const int64_t rows = ShapeContext::merge_dim(
      m, borders[0], concat("the length of block_shape and the rows of ", borders_name));
  b.input = rows == kUnknown
                ? c.input(0)
                : c.with_rank_at_least(0, static_cast<int>(std::min<int64_t>(rows, kMaxRank)) + 1);
  if (rows > kMaxRank - 1)
    throw invalid_argument("block_shape has ", rows, " elements, at most ", kMaxRank - 1,
                           " are supported");
  const std::optional<std::vector<int64_t>> block = known_vector(c, 1);
  b.borders = c.constant(2);
  b.known = block && b.input.rank_known();
  if (block) b.block = *block;
  for (size_t i = 0; i < b.block.size(); ++i) {
    if (b.block[i] < 1)
      throw invalid_argument("block_shape must be positive: block_shape[", i, "] = ", b.block[i]);
  }
  return b;
}

// Borders (before, after) of block axis i.
std::pair<int64_t, int64_t> border(const BlockInputs& b, size_t i, const char* name) {
  const int64_t before = matrix_element(*b.borders, static_cast<int64_t>(2 * i));
  const int64_t after = matrix_element(*b.borders, static_cast<int64_t>(2 * i + 1));
  if (before < 0 || after < 0)
    throw invalid_argument(name, " must be non-negative: ", name, "[", i, "] = ", before, ", ",
                           after);
  return {before, after};
}

PartialShape all_unknown(const PartialShape& shape) {
  return shape.rank_known() ? PartialShape::unknown_with_rank(shape.rank()) : PartialShape();
}

void space_to_batch_shape(ShapeContext& c) {
  const BlockInputs b = block_inputs(c, "paddings");
  c.set_output(0, all_unknown(b.input));
  if (!b.known) return;
  PartialShape output = b.input;
  int64_t batch = b.input.dim(0);
  for (size_t i = 0; i < b.block.size(); ++i) {
    const int axis = static_cast<int>(i) + 1;
    const int64_t factors[] = {batch, b.block[i]};
    batch = product_of(factors);
    output = output.with_dim(axis, kUnknown);
    if (b.borders == nullptr) continue;
    const auto [before, after] = border(b, i, "paddings");
    const int64_t padded = sum_of_dims(b.input.dim(axis), sum_of_dims(before, after));
    if (padded == kUnknown) continue;
    if (padded % b.block[i] != 0) {
      throw invalid_argument("padded_shape[", i, "]=", padded, " is not divisible by block_shape[",
                             i, "]=", b.block[i]);
    }
    output = output.with_dim(axis, padded / b.block[i]);
  }
  c.set_output(0, output.with_dim(0, batch));
}

void batch_to_space_shape(ShapeContext& c) {
  const BlockInputs b = block_inputs(c, "crops");
  c.set_output(0, all_unknown(b.input));
  if (!b.known) return;
  PartialShape output = b.input;
  const int64_t blocks = product_of(b.block);
  const int64_t batch = b.input.dim(0);
  if (batch != kUnknown && batch % blocks != 0) {
    throw invalid_argument("Input batch dimension (", batch,
                           ") is not divisible by product of block sizes (", blocks, ")");
  }
  output = output.with_dim(0, batch == kUnknown ? kUnknown : batch / blocks);
  for (size_t i = 0; i < b.block.size(); ++i) {
    const int axis = static_cast<int>(i) + 1;
    output = output.with_dim(axis, kUnknown);
    if (b.borders == nullptr) continue;
    const auto [before, after] = border(b, i, "crops");
    const int64_t factors[] = {b.input.dim(axis), b.block[i]};
    const int64_t whole = product_of(factors);
    if (whole != kUnknown && before + after > whole) {
      throw invalid_argument("cropped_shape[", i, "]=", whole - before - after,
                             " must be non-negative");
    }
    output = output.with_dim(axis, whole == kUnknown ? kUnknown : whole - before - after);
  }
  c.set_output(0, output);
}

void space_to_batch_gradient(GradientContext& c) {
  c.set(0, c.e.call("BatchToSpaceND", {c.gradient(), c.input(1), c.input(2)}));
}
void batch_to_space_gradient(GradientContext& c) {
  c.set(0, c.e.call("SpaceToBatchND", {c.gradient(), c.input(1), c.input(2)}));
}

// --- Depth ------------------------------------------------------------------------------------

struct ImageAxes {
  int height, width, depth;
};
ImageAxes image_axes(const OpInstance& op) {
  return op.get_string("data_format") == "NHWC" ? ImageAxes{1, 2, 3} : ImageAxes{2, 3, 1};
}

void space_to_depth_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank(0, 4);
  const ImageAxes axes = image_axes(c.op());
  const int64_t block = c.op().get_int("block_size");
  PartialShape output = input;
  for (int axis : {axes.height, axes.width}) {
    const int64_t extent = input[axis];
    if (extent == kUnknown) continue;
    if (extent % block != 0) {
      throw invalid_argument("image of shape ", input, " is not divisible by block_size ", block,
                             " along axis ", axis);
    }
    output = output.with_dim(axis, extent / block);
  }
  const int64_t factors[] = {input[axes.depth], checked_product(block, block)};
  c.set_output(0, output.with_dim(axes.depth, product_of(factors)));
}

void depth_to_space_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank(0, 4);
  const ImageAxes axes = image_axes(c.op());
  const int64_t block = c.op().get_int("block_size");
  const int64_t area = checked_product(block, block);
  const int64_t depth = input[axes.depth];
  if (depth != kUnknown && depth % area != 0) {
    throw invalid_argument("depth ", depth, " of shape ", input,
                           " is not divisible by block_size^2 = ", area);
  }
  PartialShape output = input.with_dim(axes.depth, depth == kUnknown ? kUnknown : depth / area);
  for (int axis : {axes.height, axes.width}) {
    const int64_t factors[] = {input[axis], block};
    output = output.with_dim(axis, product_of(factors));
  }
  c.set_output(0, output);
}

NamedAttrs depth_attrs(const OpInstance& op) {
  return {{"block_size", op.get_int("block_size")}, {"data_format", op.get_string("data_format")}};
}
void space_to_depth_gradient(GradientContext& c) {
  c.set(0, c.e.call("DepthToSpace", {c.gradient()}, depth_attrs(c.op())));
}
void depth_to_space_gradient(GradientContext& c) {
  c.set(0, c.e.call("SpaceToDepth", {c.gradient()}, depth_attrs(c.op())));
}

}  // namespace

void register_space_ops(OpRegistry& r) {
  r.op("SpaceToBatchND", HostAccess::kNone)
      .input("input: T")
      .input("block_shape: Tblock_shape")
      .input("paddings: Tpaddings")
      .output("output: T")
      .attr("T: type")
      .attr("Tblock_shape: {int32, int64} = int32")
      .attr("Tpaddings: {int32, int64} = int32")
      .host("block_shape")
      .host("paddings")
      .shape(space_to_batch_shape)
      .gradient(space_to_batch_gradient, {"block_shape", "paddings"})
      .doc(
          "Zero-padded spatial axes cut into blocks whose elements go to the batch axis: [batch, "
          "spatial..., rest...] becomes "
          "[block_0 * block_1 * ... * batch, padded_i / block_i..., rest...].\n\n"
          "Errors: InvalidArgument when a padded extent is not divisible by its block.");
  r.op("BatchToSpaceND", HostAccess::kNone)
      .input("input: T")
      .input("block_shape: Tblock_shape")
      .input("crops: Tcrops")
      .output("output: T")
      .attr("T: type")
      .attr("Tblock_shape: {int32, int64} = int32")
      .attr("Tcrops: {int32, int64} = int32")
      .host("block_shape")
      .host("crops")
      .shape(batch_to_space_shape)
      .gradient(batch_to_space_gradient, {"block_shape", "crops"})
      .doc(
          "The inverse of SpaceToBatchND: parts of the batch axis laid out as blocks of the "
          "spatial axes, then cropped.");
  for (const bool to_depth : {true, false}) {
    r.op(to_depth ? "SpaceToDepth" : "DepthToSpace", HostAccess::kNone)
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("block_size: int >= 2")
        .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
        .shape(to_depth ? space_to_depth_shape : depth_to_space_shape)
        .gradient(to_depth ? space_to_depth_gradient : depth_to_space_gradient)
        .doc(to_depth ? "Blocks of block_size x block_size pixels made one pixel of block_size^2 "
                        "times the depth."
                      : "Pixels made blocks of block_size x block_size with the depth divided by "
                        "block_size^2: the inverse of "
                        "SpaceToDepth.");
  }
  r.finish("space");
}

}  // namespace treenail
