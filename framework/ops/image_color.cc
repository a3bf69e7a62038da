// SPDX-License-Identifier: Apache-2.0
// Contrast, hue and saturation of images, and colours as hue, saturation and value. Computed in
// kernels/cpu/image/image_color.cc.
#include <cstdint>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

PartialShape colored(const PartialShape& images) {
  if (!images.rank_known()) return images;
  const int64_t channels = images[images.rank() - 1];
  if (channels != kUnknown && channels != 3)
    throw invalid_argument("the last axis must hold 3 channels, got ", images);
  return images.with_dim(images.rank() - 1, 3);
}

void color_shape(ShapeContext& c) { c.set_output(0, colored(c.with_rank_at_least(0, 1))); }

void adjust_color_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  c.set_output(0, colored(c.with_rank_at_least(0, 3)));
}

void adjust_contrast_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  c.set_output(0, c.with_rank_at_least(0, 3));
}

// factor * x + (1 - factor) * mean(x) is its own adjoint; its derivative by the factor is
// x - mean(x).
void adjust_contrast_gradient(GradientContext& c) {
  const Value g = c.gradient();
  if (c.needed(0)) c.set(0, c.e.call("AdjustContrast", {g, c.input(1)}));
  if (c.needed(1)) {
    const Value x = c.input(0);
    const Value mean = c.e.call("AdjustContrast", {x, c.e.const_scalar(DType::kFloat32, 0)});
    c.set(1, c.e.cast(sum_of_all(c.e, c.e.mul(g, c.e.sub(x, mean))), DType::kFloat32));
  }
}

// Arithmetic on values of one dtype: rules that read as the formulas they stand for.
struct Term {
  Emitter* e;
  Value v;
};
Term op2(const char* name, Term a, Term b) { return {a.e, a.e->call(name, {a.v, b.v})}; }
Term number(Term like, double x) {
  return {like.e, like.e->const_scalar(like.e->dtype(like.v), x)};
}
Term operator+(Term a, Term b) { return op2("Add", a, b); }
Term operator-(Term a, Term b) { return op2("Sub", a, b); }
Term operator*(Term a, Term b) { return op2("Mul", a, b); }
Term operator-(Term a, double b) { return a - number(a, b); }
Term operator*(Term a, double b) { return a * number(a, b); }
Term operator-(double a, Term b) { return number(b, a) - b; }
Term over(Term a, Term b) { return op2("DivNoNan", a, b); }
// 1 where the comparison holds, else 0, in the dtype of `a`.
Term where(const char* comparison, Term a, Term b) {
  return {a.e, a.e->cast(op2(comparison, a, b).v, a.e->dtype(a.v))};
}
Term magnitude(Term a) { return {a.e, a.e->call("Abs", {a.v})}; }
Term limited(Term a) { return op2("Minimum", op2("Maximum", a, number(a, 0)), number(a, 1)); }
// 1 inside (0, 1), where limited() has a slope.
Term inside(Term a) { return where("Greater", a, number(a, 0)) * where("Less", a, number(a, 1)); }

// The three channels of an image, each with a last axis of 1.
struct Channels {
  Term c[3];
  Channels(Term a, Term b, Term d) : c{a, b, d} {}
  Channels(Emitter& e, Value image) : c{{&e, {}}, {&e, {}}, {&e, {}}} {
    const Value axis = e.const_scalar(DType::kInt32, -1), inputs[] = {axis, image};
    const std::vector<Value> parts = e.emit("Split", inputs, {{"num_split", int64_t{3}}});
    for (int i = 0; i < 3; ++i) c[i].v = parts[static_cast<size_t>(i)];
  }
  Value joined() const {
    Emitter& e = *c[0].e;
    const Value values[] = {c[0].v, c[1].v, c[2].v, e.const_scalar(DType::kInt32, -1)};
    const int sizes[] = {3, 1};
    return e.call("Concat", values, {}, sizes);
  }
};

// How much each of red, green and blue a hue holds, and the slope of that along the hue.
struct Weights {
  Term w[3], slope[3];
  explicit Weights(Term hue) : w{hue, hue, hue}, slope{hue, hue, hue} {
    const double center[] = {3, 2, 4};
    for (int i = 0; i < 3; ++i) {
      const Term from_center = hue * 6.0 - center[i], distance = magnitude(from_center);
      const Term raw = i == 0 ? distance - 1.0 : 2.0 - distance;
      const Term sign = {hue.e, hue.e->call("Sign", {from_center.v})};
      w[i] = limited(raw);
      slope[i] = inside(raw) * sign * (i == 0 ? 6.0 : -6.0);
    }
  }
};

// The gradient by hue, saturation and value of HSVToRGB, given that of its result: each channel is
// value * (1 - saturation + saturation * weight).
Channels hsv_to_rgb_gradient(const Channels& hsv, const Channels& g) {
  const Term h = hsv.c[0], s = hsv.c[1], v = hsv.c[2];
  const Weights w(h);
  const auto sum = [&](auto term) { return term(0) + term(1) + term(2); };
  const Term by_hue = sum([&](int i) { return g.c[i] * w.slope[i]; });
  const Term by_saturation = sum([&](int i) { return g.c[i] * (w.w[i] - 1.0); });
  const Term by_value = sum([&](int i) { return g.c[i] * (1.0 - s + s * w.w[i]); });
  return {by_hue * s * v, by_saturation * v, by_value};
}

// The gradient by red, green and blue of RGBToHSV. Of equal channels the first counts as the
// largest, the last as the smallest, as in the kernel.
Channels rgb_to_hsv_gradient(const Channels& rgb, const Channels& g) {
  const Term r = rgb.c[0], gr = rgb.c[1], b = rgb.c[2];
  const Term most = op2("Maximum", r, op2("Maximum", gr, b));
  const Term least = op2("Minimum", r, op2("Minimum", gr, b));
  const Term most_r = where("Equal", r, most), most_g = (1.0 - most_r) * where("Equal", gr, most);
  const Term least_b = where("Equal", b, least),
             least_g = (1.0 - least_b) * where("Equal", gr, least);
  const Term most_of[] = {most_r, most_g, 1.0 - most_r - most_g};
  const Term least_of[] = {1.0 - least_b - least_g, least_g, least_b};
  const Term range = most - least;
  // The hue is numerator / range / 6 and a constant.
  const Term numerator = most_of[0] * (gr - b) + most_of[1] * (b - r) + most_of[2] * (r - gr);
  const Term by_numerator = over(g.c[0], range * 6.0);
  const Term by_range = over(by_numerator * numerator, range);
  const Term by_most = g.c[2] + over(g.c[1] * least, most * most) - by_range;
  const Term by_least = by_range - over(g.c[1], most);
  const auto channel = [&](int i, int before, int after) {
    return by_numerator * (most_of[before] - most_of[after]) + most_of[i] * by_most +
           least_of[i] * by_least;
  };
  return {channel(0, 2, 1), channel(1, 0, 2), channel(2, 1, 0)};
}

void rgb_to_hsv_rule(GradientContext& c) {
  c.set(0, rgb_to_hsv_gradient(Channels(c.e, c.input(0)), Channels(c.e, c.gradient())).joined());
}

void hsv_to_rgb_rule(GradientContext& c) {
  c.set(0, hsv_to_rgb_gradient(Channels(c.e, c.input(0)), Channels(c.e, c.gradient())).joined());
}

Term amount_as(const GradientContext& c, Emitter& e) {
  return {&e, e.cast(c.input(1), c.input_dtype(0))};
}

// Both adjustments go through hue, saturation and value.
void adjust_hue_gradient(GradientContext& c) {
  const Channels hsv(c.e, c.e.call("RGBToHSV", {c.input(0)}));
  const Term turned = hsv.c[0] + amount_as(c, c.e);
  const Term hue = turned - Term{&c.e, c.e.call("Floor", {turned.v})};
  const Channels g = hsv_to_rgb_gradient({hue, hsv.c[1], hsv.c[2]}, Channels(c.e, c.gradient()));
  if (c.needed(0)) c.set(0, rgb_to_hsv_gradient(Channels(c.e, c.input(0)), g).joined());
  if (c.needed(1)) c.set(1, c.e.cast(sum_of_all(c.e, g.c[0].v), DType::kFloat32));
}

void adjust_saturation_gradient(GradientContext& c) {
  const Channels hsv(c.e, c.e.call("RGBToHSV", {c.input(0)}));
  const Term scale = amount_as(c, c.e), scaled = hsv.c[1] * scale;
  const Channels g =
      hsv_to_rgb_gradient({hsv.c[0], limited(scaled), hsv.c[2]}, Channels(c.e, c.gradient()));
  const Term by_scaled = g.c[1] * inside(scaled);
  if (c.needed(0)) {
    const Channels through = {g.c[0], by_scaled * scale, g.c[2]};
    c.set(0, rgb_to_hsv_gradient(Channels(c.e, c.input(0)), through).joined());
  }
  if (c.needed(1)) c.set(1, c.e.cast(sum_of_all(c.e, (by_scaled * hsv.c[1]).v), DType::kFloat32));
}

void declare_adjustments(OpRegistry& r) {
  r.op("AdjustContrast", HostAccess::kNone)
      .input("images: T")
      .input("contrast_factor: float")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}")
      .shape(adjust_contrast_shape)
      .gradient(adjust_contrast_gradient, {"images", "contrast_factor"})
      .doc(R"(Moves the pixels of images away from their mean: (x - mean) * contrast_factor + mean.

images is [..., height, width, channels]; the mean is that of each channel of each image, summed in float64. contrast_factor
is a scalar.
Errors: InvalidArgument for a rank below 3.)");

  r.op("AdjustHue", HostAccess::kNone)
      .input("images: T")
      .input("delta: float")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}")
      .shape(adjust_color_shape)
      .gradient(adjust_hue_gradient, {"images", "delta"})
      .doc(R"(Turns the hue of images by delta, a scalar, in whole turns of the colour circle.

images is [..., height, width, 3], red, green and blue. Hue as in RGBToHSV; saturation and value stay.
Errors: InvalidArgument for a rank below 3 or other than 3 channels.)");

  r.op("AdjustSaturation", HostAccess::kNone)
      .input("images: T")
      .input("scale: float")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}")
      .shape(adjust_color_shape)
      .gradient(adjust_saturation_gradient, {"images", "scale"})
      .doc(R"(Multiplies the saturation of images by scale, a scalar, and limits it to [0, 1].

images is [..., height, width, 3], red, green and blue. Saturation as in RGBToHSV; hue and value stay.
Errors: InvalidArgument for a rank below 3 or other than 3 channels.)");
}

}  // namespace

void register_image_color_ops(OpRegistry& r) {
  declare_adjustments(r);

  r.op("RGBToHSV", HostAccess::kNone)
      .input("images: T")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double} = float")
      .shape(color_shape)
      .gradient(rgb_to_hsv_rule, {"images"})
      .doc(R"(Converts red, green and blue in [0, 1] to hue, saturation and value.

The last axis holds the 3 channels. The value is the largest of them, the saturation (largest - smallest) / largest, and 0
for black; the hue is in [0, 1), 0 for red, 1/3 for green, 2/3 for blue and for what has no colour 0 (Smith 1978).
Errors: InvalidArgument for a scalar or other than 3 channels.)");

  r.op("HSVToRGB", HostAccess::kNone)
      .input("images: T")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double} = float")
      .shape(color_shape)
      .gradient(hsv_to_rgb_rule, {"images"})
      .doc(
          R"(Converts hue, saturation and value in [0, 1] to red, green and blue: the inverse of RGBToHSV.

The last axis holds the 3 channels.
Errors: InvalidArgument for a scalar or other than 3 channels.)");

  r.finish("image_color");
}

}  // namespace treenail
