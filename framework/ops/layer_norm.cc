// SPDX-License-Identifier: Apache-2.0
// Normalisation of each row by its own mean and variance. Computed in
// kernels/cpu/normalization/layer_norm.cc.
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

// What is left of x's shape without its last axis.
PartialShape rows_of(const PartialShape& x) {
  return x.rank_known() ? x.sub(0, x.rank() - 1) : PartialShape();
}

// Input i has an element per column; returns x with their number where that told it.
PartialShape with_columns(ShapeContext& c, int i, const PartialShape& x, const char* name) {
  const PartialShape given = c.with_rank(i, 1);
  if (!x.rank_known()) return x;
  const int64_t columns = x.dim(x.rank() - 1);
  if (columns != kUnknown && given.dim(0) != kUnknown && given.dim(0) != columns) {
    throw invalid_argument(name, " must have one element per element of x's last axis, ", columns,
                           ", got shape ", given);
  }
  return columns != kUnknown ? x : x.with_dim(x.rank() - 1, given.dim(0));
}

void layer_norm_shape(ShapeContext& c) {
  PartialShape x = c.with_rank_at_least(0, 1);
  x = with_columns(c, 1, x, "scale");
  x = with_columns(c, 2, x, "offset");
  c.set_output(0, x);
  c.set_output(1, rows_of(x));
  c.set_output(2, rows_of(x));
}

void layer_norm_grad_shape(ShapeContext& c) {
  PartialShape x = ShapeContext::merge(c.with_rank_at_least(0, 1), c.with_rank_at_least(1, 1),
                                       "y_backprop and x");
  x = with_columns(c, 2, x, "scale");
  PartialShape rows =
      ShapeContext::merge(rows_of(x), c.input(3), "x without its last axis and mean");
  ShapeContext::merge(rows, c.input(4), "mean and inverse_deviation");
  c.set_output(0, x);
  const PartialShape columns({x.rank_known() ? x.dim(x.rank() - 1) : c.with_rank(2, 1).dim(0)});
  c.set_output(1, columns);
  c.set_output(2, columns);
}

// x, its statistics and what is made of them, all in the statistics' dtype.
struct RowTerms {
  Emitter& e;
  DType type;

  Value wide(Value x) const { return e.cast(x, type); }
  Value last() const { return e.const_tensor(Tensor::scalar<int32_t>(-1)); }
  // A number per row, to go with every element of it.
  Value spread(Value per_row) const { return e.call("ExpandDims", {per_row, last()}); }
  Value mean(Value x) const { return e.call("Mean", {x, last()}, {{"keep_dims", true}}); }
  // u - mean(u) - h mean(u h): what changes when a row changes by u but is normalised again. It is
  // its own adjoint.
  Value project(Value u, Value h) const {
    return e.sub(e.sub(u, mean(u)), e.mul(h, mean(e.mul(u, h))));
  }
};

void layer_norm_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const RowTerms t{e, c.input_dtype(1)};
  const Value mean = c.output(1), inverse = c.output(2);
  Value dx;
  if (c.has_gradient(0)) {
    const std::vector<Value> in = {c.gradient(0), c.input(0), c.input(1), mean, inverse};
    const std::vector<Value> out = e.emit("LayerNormGrad", in, {});
    dx = out[0];
    c.set(1, out[1]);
    c.set(2, out[2]);
  }
  if (!c.needed(0)) return;
  if (c.has_gradient(1) || c.has_gradient(2)) {
    // Of n columns, each adds 1/n to the mean and -r^2 h / n to r, the inverse deviation.
    const Value n = e.cast(e.call("Size", {c.input(1)}, {{"out_type", DType::kInt64}}), t.type);
    const Value deviations = e.sub(t.wide(c.input(0)), t.spread(mean));
    Value through;
    if (c.has_gradient(2)) {
      const Value cubed = e.mul(e.square(inverse), inverse);
      const Value each = e.neg(e.div(e.mul(c.gradient(2), cubed), n));
      through = e.mul(t.spread(each), deviations);
    } else {
      through = e.zeros_like(deviations);
    }
    if (c.has_gradient(1)) through = e.add(through, t.spread(e.div(c.gradient(1), n)));
    dx = sum_of_valid(e, dx, e.cast(through, c.input_dtype(0)));
  }
  if (dx.valid()) c.set(0, dx);
}

// LayerNormGrad computes dx = r P(u), ds = sum(g h), do = sum(g), with h = (x - mean) r, u = s g
// and P of RowTerms. Let a, b, c be the gradients of dx, ds and do. Then
//   d/dg = s r P(a) + b h + c            d/ds = sum(g r P(a))
//   d/dx = -r^2 (h mean(a P(u)) + mean(u h) P(a) + mean(a h) P(u)) + r P(b g)
// where mean and r are those of x, so that x alone carries their part.
void layer_norm_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const RowTerms t{e, c.input_dtype(2)};
  const Value g = t.wide(c.input(0)), x = t.wide(c.input(1)), s = c.input(2);
  const Value r = t.spread(c.input(4));
  const Value h = e.mul(e.sub(x, t.spread(c.input(3))), r);
  Value dg, dx;
  if (c.has_gradient(0)) {
    const Value a = t.wide(c.gradient(0)), pa = t.project(a, h);
    const Value u = e.mul(s, g), pu = t.project(u, h);
    dg = e.mul(s, e.mul(r, pa));
    if (c.needed(2)) c.set(2, c.sum_to_input(e.mul(g, e.mul(r, pa)), 2));
    const Value all = e.add(e.mul(h, t.mean(e.mul(a, pu))),
                            e.add(e.mul(t.mean(e.mul(u, h)), pa), e.mul(t.mean(e.mul(a, h)), pu)));
    dx = e.neg(e.mul(e.square(r), all));
  }
  if (c.has_gradient(1)) {
    const Value b = c.gradient(1);
    dg = sum_of_valid(e, dg, e.mul(b, h));
    dx = sum_of_valid(e, dx, e.mul(r, t.project(e.mul(b, g), h)));
  }
  if (c.has_gradient(2)) {
    const Value ones = e.call("Fill", {c.input_shape_value(0), e.const_scalar(t.type, 1)});
    dg = sum_of_valid(e, dg, e.mul(c.gradient(2), ones));
  }
  if (c.needed(0) && dg.valid()) c.set(0, e.cast(dg, c.input_dtype(0)));
  if (c.needed(1) && dx.valid()) c.set(1, e.cast(dx, c.input_dtype(1)));
}

}  // namespace

void register_layer_norm_ops(OpRegistry& r) {
  r.op("LayerNorm", HostAccess::kNone)
      .input("x: T")
      .input("scale: U")
      .input("offset: U")
      .output("y: T")
      .output("mean: U")
      .output("inverse_deviation: U")
      .attr("T: {half, bfloat16, float, double}")
      .attr("U: {float, double}")
      .attr("epsilon: float = 0.00001")
      .in_place("x", "y")
      .shape(layer_norm_shape)
      .gradient(layer_norm_gradient, {"x", "scale", "mean", "inverse_deviation"})
      .doc(
          R"(Normalises each row of x, along the last axis: y = (x - mean) / sqrt(variance + epsilon) * scale + offset.

x is [..., n]; scale and offset are [n]; y has the shape of x. mean and inverse_deviation, 1 / sqrt(variance + epsilon), are
[...], one number per row, and NaN where rows are empty; the variance is biased (divided by n). U is float, or double where T
is double. Every output passes gradients on.
Source: Ba, Kiros and Hinton, Layer Normalization, 2016 (arXiv 1607.06450).
Errors: InvalidArgument for a scalar x, or vectors of another size than x's last axis.)");

  r.op("LayerNormGrad", HostAccess::kNone)
      .input("y_backprop: T")
      .input("x: T")
      .input("scale: U")
      .input("mean: U")
      .input("inverse_deviation: U")
      .output("x_backprop: T")
      .output("scale_backprop: U")
      .output("offset_backprop: U")
      .attr("T: {half, bfloat16, float, double}")
      .attr("U: {float, double}")
      .in_place("y_backprop", "x_backprop")
      .shape(layer_norm_grad_shape)
      .gradient(layer_norm_grad_gradient, {"y_backprop", "x", "scale", "mean", "inverse_deviation"})
      .doc(R"(Computes the gradients of LayerNorm.

y_backprop is the gradient of its y; x and scale are its inputs, mean and inverse_deviation its outputs. The outputs are the
gradients of x, scale and offset; mean and deviation are functions of x, and their part is in x_backprop (also in the gradient
of this op).)");
}

}  // namespace treenail
