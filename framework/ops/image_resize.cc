// SPDX-License-Identifier: Apache-2.0
// Images in another size, and the adjoints of that, which are the gradients. Computed in
// kernels/cpu/image/image_resize.cc and, for nearest neighbours,
// kernels/host/image/image_resize.cc.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

bool has_centers(const OpInstance& op) { return op.def().attr_index("half_pixel_centers") >= 0; }

void check_flags(const OpInstance& op) {
  if (has_centers(op) && op.get_bool("half_pixel_centers") && op.get_bool("align_corners"))
    throw invalid_argument("If half_pixel_centers is True, align_corners must be False.");
}

// `images` with the height and width that input 1 spells.
PartialShape resized(const ShapeContext& c, const PartialShape& images) {
  const int64_t count = c.with_rank(1, 1)[0];
  if (count != kUnknown && count != 2) throw invalid_argument("size needs 2 elements, got ", count);
  PartialShape shape = images;
  for (int i = 0; i < 2; ++i) {
    const std::optional<int64_t> extent = known_element(c, 1, static_cast<size_t>(i));
    if (extent && *extent < 1)
      throw invalid_argument("output dimensions must be positive: size[", i, "] = ", *extent);
    if (images[i + 1] == 0)
      throw invalid_argument("input image must be of non-zero size, got ", images);
    shape = shape.with_dim(i + 1, extent.value_or(kUnknown));
  }
  return shape;
}

void resize_shape(ShapeContext& c) {
  check_flags(c.op());
  c.set_output(0, resized(c, c.with_rank(0, 4)));
}

void resize_gradient_shape(ShapeContext& c) {
  check_flags(c.op());
  const PartialShape grads = c.with_rank(0, 4);
  PartialShape images = c.with_rank(1, 4);
  for (const int axis : {0, 3}) {
    images = images.with_dim(
        axis, ShapeContext::merge_dim(grads[axis], images[axis], axis == 0 ? "batch" : "channels"));
  }
  for (const int axis : {1, 2}) {
    if (grads[axis] == 0 || images[axis] == 0) {
      throw invalid_argument("images must be of non-zero size, got grads ", grads,
                             " and original_image ", images);
    }
  }
  c.set_output(0, images);
}

NamedAttrs same_attrs(const GradientContext& c) {
  NamedAttrs list;
  list.emplace_back("align_corners", c.op().attr("align_corners"));
  if (has_centers(c.op()))
    list.emplace_back("half_pixel_centers", c.op().attr("half_pixel_centers"));
  return list;
}

bool real(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 || t == DType::kFloat32 ||
         t == DType::kFloat64;
}

// Elements 1 and 2 of the shape of input i: height and width.
Value extents_of(const GradientContext& c, int i) {
  const Value shape = c.input_shape_value(i, DType::kInt32);
  return c.e.call("StridedSlice",
                  {shape, int_vector(c.e, {1}), int_vector(c.e, {3}), int_vector(c.e, {1})});
}

void resize_gradient(GradientContext& c) {
  if (!c.needed(0) || !real(c.input_dtype(0))) return;
  c.set(0, c.e.call(c.op().name() + "Grad", {c.gradient(), c.input(0)}, same_attrs(c)));
}

void resize_gradient_gradient(GradientContext& c) {
  if (!c.needed(0)) return;
  const std::string& name = c.op().name();
  const std::string forward = name.substr(0, name.size() - 4);  // without Grad
  c.set(0, c.e.call(forward, {c.gradient(), extents_of(c, 0)}, same_attrs(c)));
}

void nearest_gradient(GradientContext& c) {
  if (c.needed(0) && real(c.input_dtype(0))) {
    c.set(0,
          c.e.call("ResizeNearestNeighborGrad", {c.gradient(), extents_of(c, 0)}, same_attrs(c)));
  }
}

void nearest_gradient_gradient(GradientContext& c) {
  if (c.needed(0) && real(c.input_dtype(0)))
    c.set(0, c.e.call("ResizeNearestNeighbor", {c.gradient(), extents_of(c, 0)}, same_attrs(c)));
}

OpDeclaration& flags(OpDeclaration& op, bool centers = true) {
  op.attr("align_corners: bool = false");
  return centers ? op.attr("half_pixel_centers: bool = false") : op;
}

constexpr char kSampling[] = R"(

images is [batch, height, width, channels], size two int32: the new height and width. Pixel i of an axis lies at i * old / new
of the old image; with align_corners at i * (old - 1) / (new - 1), so that the corners meet)";
constexpr char kCenters[] = R"(; with half_pixel_centers at
(i + 1/2) * old / new - 1/2, so that areas meet)";
constexpr char kErrors[] = R"(
Errors: InvalidArgument for an empty image or size, another rank, or both flags.)";

void declare_resize(OpDeclaration op, bool centers, const std::string& doc) {
  op.input("images: T")
      .input("size: int32")
      .output("resized_images: float")
      .attr("T: {int8, uint8, int16, uint16, int32, int64, half, bfloat16, float, double}");
  flags(op, centers)
      .host("size")
      .shape(resize_shape)
      .gradient(resize_gradient, {"images"})
      .doc(doc + kErrors);
}

void declare_gradient(OpDeclaration op, bool centers, const std::string& of) {
  op.input("grads: float")
      .input("original_image: T")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}");
  flags(op, centers)
      .shape(resize_gradient_shape)
      .gradient(resize_gradient_gradient)
      .doc("Computes the gradient of " + of +
           ", its adjoint.\n\ngrads is the gradient of the resized images, original_image what was "
           "resized: only its shape and dtype count. Sums are taken in float32.\nErrors: "
           "InvalidArgument when batch or "
           "channels differ, for an empty image, or both flags.");
}

void declare_nearest(OpRegistry& r) {
  OpDeclaration forward = r.op("ResizeNearestNeighbor", HostAccess::kNone);
  forward.input("images: T")
      .input("size: int32")
      .output("resized_images: T")
      .attr("T: {int8, uint8, int16, uint16, int32, int64, half, bfloat16, float, double}");
  flags(forward)
      .host("size")
      .shape(resize_shape)
      .gradient(nearest_gradient)
      .doc(std::string("Resizes images by taking the nearest pixel.") + kSampling +
           R"(, and is rounded to the nearest, half
away from zero; otherwise a pixel lies at i * old / new rounded down, with half_pixel_centers at (i + 1/2) * old / new
rounded down.)" +
           kErrors);

  OpDeclaration gradient = r.op("ResizeNearestNeighborGrad", HostAccess::kNone);
  gradient.input("grads: T")
      .input("size: int32")
      .output("output: T")
      .attr("T: {int8, uint8, int32, half, bfloat16, float, double}");
  flags(gradient)
      .host("size")
      .shape(resize_shape)
      .gradient(nearest_gradient_gradient)
      .doc(
          std::string("Computes the gradient of ResizeNearestNeighbor, its adjoint.\n\n"
                      "grads is [batch, height, width, channels], size the height and width of the "
                      "images that were resized. An element is the sum over the pixels that were "
                      "taken from it; float16 and bfloat16 are summed in float32, integers wrap "
                      "around.") +
          kErrors);
}

}  // namespace

void register_image_resize_ops(OpRegistry& r) {
  declare_resize(r.op("ResizeBilinear", HostAccess::kNone), true,
                 std::string("Resizes images by bilinear interpolation.") + kSampling + kCenters +
                     ". Beyond the border lies\nthe border's pixel.");
  declare_gradient(r.op("ResizeBilinearGrad", HostAccess::kNone), true, "ResizeBilinear");
  declare_resize(
      r.op("ResizeBicubic", HostAccess::kNone), true,
      std::string("Resizes images by bicubic interpolation (Keys 1981).") + kSampling + kCenters +
          ". The\nkernel's parameter is -3/4 and pixels beyond the border are those of the "
          "border; with half_pixel_centers it is -1/2\nand pixels beyond the border take "
          "no part.");
  declare_gradient(r.op("ResizeBicubicGrad", HostAccess::kNone), true, "ResizeBicubic");
  declare_resize(
      r.op("ResizeArea", HostAccess::kNone), false,
      std::string("Resizes images by the mean over the area that each new pixel covers.") +
          kSampling + ". A pixel\ncovers what lies between it and the next one's place.");
  declare_gradient(r.op("ResizeAreaGrad", HostAccess::kNone), false, "ResizeArea");
  declare_nearest(r);
  r.finish("image_resize");
}

}  // namespace treenail
