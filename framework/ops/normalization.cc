// SPDX-License-Identifier: Apache-2.0
// Normalisation with statistics of the batch (FusedBatchNorm) or of neighbouring channels (LRN).
// Computed in kernels/cpu/normalization/normalization.cc and lrn.cc.
#include <cstdint>
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

int channel_axis(const OpInstance& op) { return op.get_string("data_format") == "NCHW" ? 1 : 3; }

PartialShape per_channel(ShapeContext& c, int i, int64_t& channels, const char* name) {
  const PartialShape shape = c.with_rank(i, 1);
  if (channels != kUnknown && shape.dim(0) != kUnknown && shape.dim(0) != channels) {
    throw invalid_argument(name, " must have one element per channel, ", channels, ", got shape ",
                           shape);
  }
  if (channels == kUnknown) channels = shape.dim(0);
  return shape;
}

void batch_norm_shape(ShapeContext& c) {
  PartialShape x = c.with_rank(0, 4);
  const int axis = channel_axis(c.op());
  int64_t channels = x.dim(axis);
  per_channel(c, 1, channels, "scale");
  per_channel(c, 2, channels, "offset");
  const bool estimates_unused =
      c.op().get_bool("is_training") && c.op().get_float("exponential_avg_factor") == 1.0;
  for (int i = 3; i < 5; ++i) {
    // The batch's own statistics replace the estimates altogether: these may then be empty.
    const PartialShape given = c.with_rank(i, 1);
    if (!(estimates_unused && given.dim(0) == 0))
      per_channel(c, i, channels, i == 3 ? "mean" : "variance");
  }
  c.set_output(0, x.with_dim(axis, channels));
  for (int i = 1; i < 5; ++i) c.set_output(i, PartialShape({channels}));
}

void batch_norm_grad_shape(ShapeContext& c) {
  const PartialShape x =
      ShapeContext::merge(c.with_rank(0, 4), c.with_rank(1, 4), "y_backprop and x");
  const int axis = channel_axis(c.op());
  int64_t channels = x.dim(axis);
  per_channel(c, 2, channels, "scale");
  per_channel(c, 3, channels, "reserve_space_1");
  per_channel(c, 4, channels, "reserve_space_2");
  c.set_output(0, x.with_dim(axis, channels));
  c.set_output(1, PartialShape({channels}));
  c.set_output(2, PartialShape({channels}));
}

NamedAttrs batch_norm_attrs(const GradientContext& c) {
  return {{"epsilon", c.op().attr("epsilon")},
          {"data_format", c.op().attr("data_format")},
          {"is_training", c.op().attr("is_training")}};
}

// Images and per-channel values together, all in the dtype of the statistics; spread per-channel
// values have the shape [1, C, 1, 1] or [1, 1, 1, C].
struct ChannelTerms {
  GradientContext& c;
  Emitter& e;
  DType type;
  std::vector<int64_t> axes;
  Value spread_shape;

  ChannelTerms(GradientContext& c, DType type) : c(c), e(c.e), type(type) {
    const bool second = channel_axis(c.op()) == 1;
    axes = second ? std::vector<int64_t>{0, 2, 3} : std::vector<int64_t>{0, 1, 2};
    const std::vector<int64_t> spread =
        second ? std::vector<int64_t>{1, -1, 1, 1} : std::vector<int64_t>{1, 1, 1, -1};
    spread_shape = e.const_ints(DType::kInt32, spread);
  }
  Value wide(Value x) const { return e.cast(x, type); }
  Value spread(Value per_channel) const { return e.reshape(per_channel, spread_shape); }
  Value over_batch(const char* op, Value x, bool keep) const {
    return e.call(op, {x, e.const_ints(DType::kInt32, axes)}, {{"keep_dims", keep}});
  }
  Value mean(Value x) const { return over_batch("Mean", x, true); }
  Value sum(Value x) const { return over_batch("Sum", x, false); }
  Value constant(double x) const { return e.const_scalar(type, x); }
};

// What arrives at the statistics themselves: used ones (reserve spaces) and new estimates, which
// contain them.
struct StatisticsGradient {
  Value mean, variance;          // of the statistics used
  Value old_mean, old_variance;  // of the estimates given
};

StatisticsGradient statistics_gradient(GradientContext& c, const ChannelTerms& t, Value count) {
  const double factor = c.op().get_float("exponential_avg_factor");
  const bool training = c.op().get_bool("is_training");
  StatisticsGradient g;
  auto add = [&](Value& sum, int output, Value weight) {
    if (c.has_gradient(output))
      sum = sum_of_valid(t.e, sum,
                         weight.valid() ? t.e.mul(c.gradient(output), weight) : c.gradient(output));
  };
  add(g.mean, 3, Value());
  add(g.variance, 4, Value());
  if (!training) {
    add(g.mean, 1, Value());
    add(g.variance, 2, Value());
    return g;
  }
  const Value one = t.constant(1), share = t.constant(factor);
  add(g.mean, 1, share);
  if (c.has_gradient(2)) {
    const Value others = t.e.call("Maximum", {t.e.sub(count, one), one});
    add(g.variance, 2, t.e.mul(share, t.e.div(count, others)));
  }
  if (factor != 1.0) {
    add(g.old_mean, 1, t.constant(1 - factor));
    add(g.old_variance, 2, t.constant(1 - factor));
  }
  return g;
}

// y's own gradient is FusedBatchNormGrad's; beyond it lies what goes through mean and variance as
// values.
void batch_norm_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const ChannelTerms t(c, c.input_dtype(1));
  const bool training = c.op().get_bool("is_training");
  const Value mean = c.output(3), variance = c.output(4);
  Value dx;
  Value count;
  if (training &&
      (c.has_gradient(1) || c.has_gradient(2) || c.has_gradient(3) || c.has_gradient(4))) {
    auto size = [&](Value x) {
      return e.cast(e.call("Size", {x}, {{"out_type", DType::kInt64}}), t.type);
    };
    count = e.div(size(c.input(0)), size(c.input(1)));
  }
  StatisticsGradient g = statistics_gradient(c, t, count);
  if (c.has_gradient(0)) {
    const std::vector<Value> in = {c.gradient(0), c.input(0), c.input(1), mean, variance};
    const std::vector<Value> out = e.emit("FusedBatchNormGrad", in, batch_norm_attrs(c));
    dx = out[0];
    c.set(1, out[1]);
    c.set(2, out[2]);
    if (!training && (c.needed(3) || c.needed(4))) {
      // y = (x - mean) r scale + offset: by mean -r scale per element, by variance -1/2 r^2 of what
      // scale gets.
      const Value r = e.call("Rsqrt", {e.add(variance, t.constant(c.op().get_float("epsilon")))});
      g.mean = sum_of_valid(e, g.mean, e.neg(e.mul(e.mul(r, c.input(1)), out[2])));
      const Value half = t.constant(-0.5);
      g.variance =
          sum_of_valid(e, g.variance, e.mul(half, e.mul(e.mul(e.square(r), c.input(1)), out[1])));
    }
  }
  if (!training) {
    g.old_mean = g.mean;
    g.old_variance = g.variance;
  } else if (g.mean.valid() || g.variance.valid()) {
    // mean(x) passes g / n to each element, variance(x) passes 2 g (x - mean) / n.
    const Value x = t.wide(c.input(0));
    Value through;
    if (g.variance.valid()) {
      const Value each = t.spread(e.div(e.mul(t.constant(2), g.variance), count));
      through = e.mul(each, e.sub(x, t.spread(mean)));
    }
    if (g.mean.valid()) {
      const Value zeros =
          through.valid() ? through : e.call("Fill", {c.input_shape_value(0), t.constant(0)});
      through = e.add(zeros, t.spread(e.div(g.mean, count)));
    }
    dx = sum_of_valid(e, dx, e.cast(through, c.input_dtype(0)));
  }
  if (dx.valid()) c.set(0, dx);
  if (c.needed(3) && g.old_mean.valid()) c.set(3, g.old_mean);
  if (c.needed(4) && g.old_variance.valid()) c.set(4, g.old_variance);
}

// FusedBatchNormGrad computes dx = s r P(g), ds = sum(g h), do = sum(g), with h = (x - mean) r, r =
// 1 / sqrt(var + epsilon) and, in training, P(u) = u - mean(u) - h mean(u h), else P(u) = u. Let a,
// b, c be the gradients of dx, ds and do. Then
//   d/dg = s r P(a) + b h + c            d/ds = sum(a r P(g))
//   d/dx = -s r^2 (h mean(a P(g)) + mean(g h) P(a) + mean(a h) P(g)) + b r P(g)        in training,
//   and b r g otherwise,
// where mean and variance in training are those of x, so that x alone carries their part; reserve
// spaces get nothing then, and otherwise, by dr/dvar = -r^3 / 2,
//   d/dmean = -b r sum(g)                d/dvar = -r^2 / 2 (sum(a s r g) + b sum(g h))
void reserve_space_gradients(GradientContext& c, const ChannelTerms& t, Value g, Value h, Value s,
                             Value r) {
  Emitter& e = c.e;
  if (c.needed(3) && c.has_gradient(1)) {
    c.set(3, t.sum(e.neg(e.mul(t.spread(c.gradient(1)), e.mul(r, g)))));
  }
  if (!c.needed(4)) return;
  Value terms;
  if (c.has_gradient(0)) terms = e.mul(t.wide(c.gradient(0)), e.mul(e.mul(s, r), g));
  if (c.has_gradient(1))
    terms = sum_of_valid(e, terms, e.mul(t.spread(c.gradient(1)), e.mul(g, h)));
  if (terms.valid()) c.set(4, t.sum(e.mul(terms, e.mul(t.constant(-0.5), e.square(r)))));
}

void batch_norm_grad_gradient(GradientContext& c) {
  const ChannelTerms t(c, c.input_dtype(2));
  Emitter& e = c.e;
  const bool training = c.op().get_bool("is_training");
  const Value g = t.wide(c.input(0)), x = t.wide(c.input(1)), s = t.spread(c.input(2));
  const Value variance = e.add(t.spread(c.input(4)), t.constant(c.op().get_float("epsilon")));
  const Value r = e.call("Rsqrt", {variance});
  const Value h = e.mul(e.sub(x, t.spread(c.input(3))), r);
  auto project = [&](Value u) {
    return training ? e.sub(e.sub(u, t.mean(u)), e.mul(h, t.mean(e.mul(u, h)))) : u;
  };
  const Value pg = project(g);
  Value dg, dx;
  if (c.has_gradient(0)) {
    const Value a = t.wide(c.gradient(0)), pa = project(a);
    dg = e.mul(e.mul(s, r), pa);
    if (c.needed(2)) c.set(2, t.sum(e.mul(a, e.mul(r, pg))));
    if (training) {
      const Value all =
          e.add(e.mul(h, t.mean(e.mul(a, pg))),
                e.add(e.mul(t.mean(e.mul(g, h)), pa), e.mul(t.mean(e.mul(a, h)), pg)));
      dx = e.neg(e.mul(e.mul(s, e.square(r)), all));
    }
  }
  if (c.has_gradient(1)) {
    const Value b = t.spread(c.gradient(1));
    dg = sum_of_valid(e, dg, e.mul(b, h));
    dx = sum_of_valid(e, dx, e.mul(b, e.mul(r, pg)));
  }
  if (c.has_gradient(2)) {
    const Value ones = e.call("Fill", {c.input_shape_value(0), t.constant(1)});
    dg = sum_of_valid(e, dg, e.mul(t.spread(c.gradient(2)), ones));
  }
  if (!training) reserve_space_gradients(c, t, g, h, s, r);
  if (c.needed(0) && dg.valid()) c.set(0, e.cast(dg, c.input_dtype(0)));
  if (c.needed(1) && dx.valid()) c.set(1, e.cast(dx, c.input_dtype(1)));
}

void declare_batch_norm(OpRegistry& r) {
  r.op("FusedBatchNorm", HostAccess::kNone)
      .input("x: T")
      .input("scale: U")
      .input("offset: U")
      .input("mean: U")
      .input("variance: U")
      .output("y: T")
      .output("batch_mean: U")
      .output("batch_variance: U")
      .output("reserve_space_1: U")
      .output("reserve_space_2: U")
      .attr("T: {half, bfloat16, float, double}")
      .attr("U: {float, double}")
      .attr("epsilon: float = 0.0001")
      .attr("exponential_avg_factor: float = 1.0")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .attr("is_training: bool = true")
      .in_place("x", "y")
      .shape(batch_norm_shape)
      .gradient(batch_norm_gradient, {"x", "scale", "reserve_space_1", "reserve_space_2"})
      .doc(
          R"(Normalises each channel of the images: y = (x - mean) / sqrt(variance + epsilon) * scale + offset.

x is [batch, height, width, channels] ("NHWC") or [batch, channels, height, width] ("NCHW"); scale, offset, mean and variance
have one element per channel. U is float, or double where T is double.
With is_training the mean and the variance of the batch are used. batch_mean and batch_variance are then new estimates for
inference: old * (1 - exponential_avg_factor) + new * exponential_avg_factor, where the new variance is that of the batch times
n / (n - 1), unbiased for n elements per channel; with a factor of 1 (the default) the old ones, mean and variance, are not
read and may be empty. Without is_training mean and variance are used and passed on. reserve_space_1 and reserve_space_2
are the mean and the (biased) variance used, for FusedBatchNormGrad. Every output passes gradients on.
Source: Ioffe and Szegedy, Batch Normalization, 2015.
Errors: InvalidArgument for another rank of x, or vectors of another size than channels.)");

  r.op("FusedBatchNormGrad", HostAccess::kNone)
      .input("y_backprop: T")
      .input("x: T")
      .input("scale: U")
      .input("reserve_space_1: U")
      .input("reserve_space_2: U")
      .output("x_backprop: T")
      .output("scale_backprop: U")
      .output("offset_backprop: U")
      .attr("T: {half, bfloat16, float, double}")
      .attr("U: {float, double}")
      .attr("epsilon: float = 0.0001")
      .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .attr("is_training: bool = true")
      .in_place("y_backprop", "x_backprop")
      .shape(batch_norm_grad_shape)
      .gradient(batch_norm_grad_gradient,
                {"y_backprop", "x", "scale", "reserve_space_1", "reserve_space_2"})
      .doc(R"(Computes the gradients of FusedBatchNorm.

y_backprop is the gradient of its y; x and scale are its inputs, reserve_space_1 and reserve_space_2 the mean and variance it
used; the attributes are its own. The outputs are the gradients of x, scale and offset; in training mean and variance are
functions of x, and their part is in x_backprop (also in the gradient of this op).)");
}

PartialShape same_as_input(ShapeContext& c, int i, const PartialShape& input, const char* name) {
  if (!c.input(i).compatible(input)) {
    throw invalid_argument(name, " has shape ", c.input(i), ", needed is that of the image, ",
                           input);
  }
  return ShapeContext::merge(input, c.input(i), name);
}

void lrn_shape(ShapeContext& c) { c.set_output(0, c.with_rank(0, 4)); }

void lrn_grad_shape(ShapeContext& c) {
  PartialShape shape = c.with_rank(1, 4);
  shape = same_as_input(c, 0, shape, "input_grads");
  c.set_output(0, same_as_input(c, 2, shape, "output_image"));
}

NamedAttrs lrn_attrs(const GradientContext& c) {
  NamedAttrs list;
  for (const char* name : {"depth_radius", "bias", "alpha", "beta"})
    list.emplace_back(name, c.op().attr(name));
  return list;
}

void lrn_gradient(GradientContext& c) {
  c.set(0, c.e.call("LRNGrad", {c.gradient(), c.input(0), c.output(0)}, lrn_attrs(c)));
}

// LRNGrad computes dx = g q - 2 alpha beta x W(p), with n = bias + alpha W(x^2), q = n^-beta, p = g
// y / n, y = x q, and W the sum over neighbouring channels, which is symmetric. With a the gradient
// of dx, F = sum(a dx) and v = W(a x):
//   dF/dg = a q - 2 alpha beta v y / n
//   dF/dx = -2 alpha beta (a W(p) + v g q / n) + 2 alpha x W(dF/dn)
//   dF/dn = -beta a g q / n + 2 alpha beta (beta + 1) v p / n
struct ChannelWindow {
  GradientContext& c;
  Emitter& e;
  Value shape, rows, filter;

  explicit ChannelWindow(GradientContext& c) : c(c), e(c.e) {
    // Channels become the width of an image of one channel; the window is a filter of ones.
    shape = c.input_shape_value(1);
    const Value last = e.call("StridedSlice", {shape, ends(3), ends(4), ends(1)});
    const Value one = ends(1);
    const Value others = e.call("StridedSlice", {shape, ends(0), ends(3), ends(1)});
    const Value count = e.call("Prod", {others, ends(0)}, {{"keep_dims", true}});
    const Value parts[] = {count, one, last, one};
    const Value axis = e.const_tensor(Tensor::scalar<int32_t>(0));
    const Value all[] = {parts[0], parts[1], parts[2], parts[3], axis};
    const int sizes[] = {4, 1};
    rows = e.emit("Concat", all, {}, sizes).at(0);
    const int64_t taps[] = {1, 2 * c.op().get_int("depth_radius") + 1, 1, 1};
    filter =
        e.call("Fill", {e.const_ints(DType::kInt32, taps), e.const_scalar(c.input_dtype(1), 1)});
  }
  Value ends(int64_t x) const { return e.const_ints(DType::kInt64, {&x, 1}); }
  Value operator()(Value x) const {
    const std::vector<int64_t> ones(4, 1);
    const Value sums =
        e.call("Conv2D", {e.reshape(x, rows), filter}, {{"strides", ones}, {"padding", "SAME"}});
    return e.reshape(sums, shape);
  }
};

void lrn_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const ChannelWindow window(c);
  const DType type = c.input_dtype(1);
  auto scalar = [&](double x) { return e.const_scalar(type, x); };
  const double alpha = c.op().get_float("alpha"), beta = c.op().get_float("beta");
  const Value g = c.input(0), x = c.input(1), a = c.gradient();
  const Value n =
      e.add(scalar(c.op().get_float("bias")), e.mul(scalar(alpha), window(e.square(x))));
  const Value q = e.call("Pow", {n, scalar(-beta)});
  const Value v = window(e.mul(a, x));
  if (c.needed(0)) {
    c.set(0, e.sub(e.mul(a, q), e.mul(scalar(2 * alpha * beta), e.mul(v, e.div(c.input(2), n)))));
  }
  if (!c.needed(1)) return;
  const Value q_n = e.div(q, n), p = e.mul(e.mul(g, x), q_n);
  const Value direct =
      e.mul(scalar(-2 * alpha * beta), e.add(e.mul(a, window(p)), e.mul(v, e.mul(g, q_n))));
  const Value through_n =
      e.add(e.mul(scalar(-beta), e.mul(e.mul(a, g), q_n)),
            e.mul(scalar(2 * alpha * beta * (beta + 1)), e.div(e.mul(v, p), n)));
  c.set(1, e.add(direct, e.mul(scalar(2 * alpha), e.mul(x, window(through_n)))));
}

void declare_lrn(OpRegistry& r) {
  r.op("LRN", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("depth_radius: int = 5")
      .attr("bias: float = 1.0")
      .attr("alpha: float = 1.0")
      .attr("beta: float = 0.5")
      .attr("T: {half, bfloat16, float, double} = float")
      .shape(lrn_shape)
      .gradient(lrn_gradient, {"input", "output"})
      .doc(R"(Normalises by the local response: output = input / (bias + alpha * sqr_sum) ^ beta.

input is [batch, height, width, channels]; sqr_sum is the sum of squares over the channels within depth_radius of each.
Source: Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural networks, 2012.
Errors: InvalidArgument for another rank.)");

  r.op("LRNGrad", HostAccess::kNone)
      .input("input_grads: T")
      .input("input_image: T")
      .input("output_image: T")
      .output("output: T")
      .attr("depth_radius: int = 5")
      .attr("bias: float = 1.0")
      .attr("alpha: float = 1.0")
      .attr("beta: float = 0.5")
      .attr("T: {half, bfloat16, float, double} = float")
      .shape(lrn_grad_shape)
      .gradient(lrn_grad_gradient, {"input_grads", "input_image", "output_image"})
      .doc(R"(Computes the gradient of LRN.

input_grads is the gradient of its output, input_image its input, output_image its output; the attributes are its own. In the
gradient of this op output_image counts as the function of input_image that it is.)");
}

}  // namespace

void register_normalization_ops(OpRegistry& r) {
  declare_batch_norm(r);
  declare_lrn(r);
  r.finish("normalization");
}

}  // namespace treenail
