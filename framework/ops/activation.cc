// SPDX-License-Identifier: Apache-2.0
// Activation functions of neural networks, and the ops their gradients are one sweep through memory
// with. Sigmoid and Tanh: transcendental.cc. Softmax: softmax.cc. Loops:
// kernels/cpu/elementwise/activation.cc.
#include <cmath>
#include <numbers>

#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr char kReals[] = "T: realnumbertype";
constexpr char kFloats[] = "T: {half, bfloat16, float, double}";

OpDeclaration activation(OpRegistry& r, const char* name, const char* types, const char* doc) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("features: T").output("activations: T").attr(types).shape(unchanged_shape).elementwise();
  d.in_place("features", "activations").doc(doc);
  return d;
}

// XGrad(gradients, features or outputs) → backprops.
OpDeclaration backprop(OpRegistry& r, const char* name, const char* types, const char* second) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("gradients: T").input(second).output("backprops: T").attr(types).elementwise();
  d.shape([](ShapeContext& c) {
    c.set_output(0, ShapeContext::merge(c.input(0), c.input(1),
                                        "the shapes of gradients and what they belong to"));
  });
  d.in_place("gradients", "backprops");
  return d;
}

// Where the gradient op is linear in the gradients and piecewise constant otherwise, it is its own
// gradient; that of the features is 0.
template <const char* kOp>
void same_op_gradient(GradientContext& c) {
  if (c.needed(0)) c.set(0, c.e.call(kOp, {c.gradient(), c.input(1)}));
  if (c.needed(1)) c.set(1, c.e.zeros_like(c.input(1)));
}
constexpr char kReluGrad[] = "ReluGrad", kRelu6Grad[] = "Relu6Grad";

void relu_gradient(GradientContext& c) {
  c.set(0, c.e.call("ReluGrad", {c.gradient(), c.output(0)}));
}
void relu6_gradient(GradientContext& c) {
  c.set(0, c.e.call("Relu6Grad", {c.gradient(), c.output(0)}));
}
void elu_gradient(GradientContext& c) {
  c.set(0, c.e.call("EluGrad", {c.gradient(), c.output(0)}));
}
void selu_gradient(GradientContext& c) {
  c.set(0, c.e.call("SeluGrad", {c.gradient(), c.output(0)}));
}
void softplus_gradient(GradientContext& c) {
  c.set(0, c.e.call("SoftplusGrad", {c.gradient(), c.input(0)}));
}
void softsign_gradient(GradientContext& c) {
  c.set(0, c.e.call("SoftsignGrad", {c.gradient(), c.input(0)}));
}

NamedAttrs alpha(GradientContext& c) { return {{"alpha", c.op().get_float("alpha")}}; }
void leaky_relu_gradient(GradientContext& c) {
  c.set(0, c.e.call("LeakyReluGrad", {c.gradient(), c.input(0)}, alpha(c)));
}
void leaky_relu_grad_gradient(GradientContext& c) {
  if (c.needed(0)) c.set(0, c.e.call("LeakyReluGrad", {c.gradient(), c.input(1)}, alpha(c)));
  if (c.needed(1)) c.set(1, c.e.zeros_like(c.input(1)));
}

// backprops = g (y < 0 ? y + offset : slope) in terms of the output y: its slope in y is g where y
// < 0, else 0.
void elu_family_grad_gradient(GradientContext& c, const char* op) {
  Emitter& e = c.e;
  const Value d = c.gradient(), y = c.input(1);
  if (c.needed(0)) c.set(0, e.call(op, {d, y}));
  if (c.needed(1)) {
    const Value zero = e.const_scalar(c.input_dtype(0), 0);
    c.set(1, e.call("Select", {e.call("Less", {y, zero}), e.mul(d, c.input(0)), zero}));
  }
}
void elu_grad_gradient(GradientContext& c) { elu_family_grad_gradient(c, "EluGrad"); }
void selu_grad_gradient(GradientContext& c) { elu_family_grad_gradient(c, "SeluGrad"); }

// g sigmoid(x): in x, g s (1 - s).
void softplus_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value d = c.gradient(), x = c.input(1);
  if (c.needed(0)) c.set(0, e.call("SoftplusGrad", {d, x}));
  if (c.needed(1)) {
    c.set(1, e.call("SigmoidGrad", {e.call("Sigmoid", {x}), e.mul(d, c.input(0))}));
  }
}

// g / (1 + |x|)²: in x, -2 g sign(x) / (1 + |x|)³.
void softsign_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value d = c.gradient(), x = c.input(1);
  if (c.needed(0)) c.set(0, e.call("SoftsignGrad", {d, x}));
  if (c.needed(1)) {
    const DType t = c.input_dtype(0);
    const Value base = e.add(e.const_scalar(t, 1), e.call("Abs", {x}));
    const Value slope = e.div(e.mul(e.const_scalar(t, -2), e.call("Sign", {x})), base);
    c.set(1, e.mul(e.call("SoftsignGrad", {e.mul(d, c.input(0)), x}), slope));
  }
}

NamedAttrs approximate(GradientContext& c) {
  return {{"approximate", c.op().get_bool("approximate")}};
}
void gelu_gradient(GradientContext& c) {
  c.set(0, c.e.call("GeluGrad", {c.gradient(), c.input(0)}, approximate(c)));
}

// x Φ(x) differentiated twice: φ(x) (2 - x²).
Value gelu_curvature(Emitter& e, Value x, DType t) {
  const Value squared = e.square(x);
  const Value density = e.mul(e.const_scalar(t, std::numbers::inv_sqrtpi / std::numbers::sqrt2),
                              e.call("Exp", {e.mul(e.const_scalar(t, -0.5), squared)}));
  return e.times(density, e.sub(e.const_scalar(t, 2), squared));
}

// x (1 + tanh u)/2 with u = k (x + b x³), differentiated twice: (1 - t²) (u' + x (u''/2 - t u'²)).
Value approximate_gelu_curvature(Emitter& e, Value x, DType t) {
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, b = 0.044715;
  const auto number = [&](double v) { return e.const_scalar(t, v); };
  const Value squared = e.square(x);
  const Value u = e.mul(x, e.add(number(k), e.mul(number(k * b), squared)));
  const Value slope = e.add(number(k), e.mul(number(3 * k * b), squared));
  const Value tanh = e.call("Tanh", {u});
  const Value bend = e.sub(e.mul(number(3 * k * b), x), e.mul(tanh, e.square(slope)));
  return e.times(e.call("TanhGrad", {tanh, e.ones_like(x)}), e.add(slope, e.mul(x, bend)));
}

void gelu_grad_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value d = c.gradient(), x = c.input(1);
  if (c.needed(0)) c.set(0, e.call("GeluGrad", {d, x}, approximate(c)));
  if (c.needed(1)) {
    const Value curvature = c.op().get_bool("approximate")
                                ? approximate_gelu_curvature(e, x, c.input_dtype(0))
                                : gelu_curvature(e, x, c.input_dtype(0));
    c.set(1, e.mul(e.mul(d, c.input(0)), curvature));
  }
}

void declare_relus(OpRegistry& r) {
  activation(r, "Relu", kReals, "max(features, 0); NaN stays NaN.")
      .gradient(relu_gradient, {"activations"});
  activation(r, "Relu6", kReals, "min(max(features, 0), 6); NaN stays NaN.")
      .gradient(relu6_gradient, {"activations"});
  activation(r, "LeakyRelu", kFloats, "features where positive, alpha * features elsewhere.")
      .attr("alpha: float = 0.2")
      .gradient(leaky_relu_gradient, {"features"});
  activation(r, "Elu", kFloats,
             "features where positive, exp(features) - 1 elsewhere.\n\nSource: Clevert et al., "
             "Fast and Accurate Deep "
             "Network Learning by Exponential Linear Units, 2016.")
      .gradient(elu_gradient, {"activations"});
  activation(
      r, "Selu", kFloats,
      "scale * (features where positive, alpha * (exp(features) - 1) elsewhere).\n\nscale = "
      "1.0507009873554805, alpha = "
      "1.6732632423543772. Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.")
      .gradient(selu_gradient, {"activations"});
}

void declare_smooth(OpRegistry& r) {
  activation(r, "Softplus", kFloats, "log(1 + exp(features)).")
      .gradient(softplus_gradient, {"features"});
  activation(r, "Softsign", kFloats, "features / (1 + |features|).")
      .gradient(softsign_gradient, {"features"});
  activation(r, "Gelu", kFloats,
             "features * Φ(features), Φ the standard normal distribution function.\n\nWith "
             "approximate = true "
             "features * (1 + tanh(sqrt(2/pi) (features + 0.044715 features³))) / 2. Source: "
             "Hendrycks and Gimpel, Gaussian "
             "Error Linear Units, 2016.")
      .attr("approximate: bool = false")
      .gradient(gelu_gradient, {"features"});
}

void declare_backprops(OpRegistry& r) {
  backprop(r, "ReluGrad", kReals, "features: T")
      .gradient(same_op_gradient<kReluGrad>, {"features"})
      .doc(
          "Gradient of Relu: gradients where features > 0, else 0. The outputs of Relu serve as "
          "features as well.");
  backprop(r, "Relu6Grad", kReals, "features: T")
      .gradient(same_op_gradient<kRelu6Grad>, {"features"})
      .doc(
          "Gradient of Relu6: gradients where 0 < features < 6, else 0. The outputs of Relu6 serve "
          "as features as well.");
  backprop(r, "LeakyReluGrad", kFloats, "features: T")
      .attr("alpha: float = 0.2")
      .gradient(leaky_relu_grad_gradient, {"features"})
      .doc("Gradient of LeakyRelu: gradients where features > 0, else alpha * gradients.");
  backprop(r, "EluGrad", kFloats, "outputs: T")
      .gradient(elu_grad_gradient, {"gradients", "outputs"})
      .doc(
          "Gradient of Elu from its outputs: gradients * (outputs + 1) where outputs < 0, else "
          "gradients.");
  backprop(r, "SeluGrad", kFloats, "outputs: T")
      .gradient(selu_grad_gradient, {"gradients", "outputs"})
      .doc(
          "Gradient of Selu from its outputs: gradients * (outputs + scale * alpha) where outputs "
          "< 0, else gradients * scale.");
  backprop(r, "SoftplusGrad", kFloats, "features: T")
      .gradient(softplus_grad_gradient, {"gradients", "features"})
      .doc("Gradient of Softplus: gradients * sigmoid(features).");
  backprop(r, "SoftsignGrad", kFloats, "features: T")
      .gradient(softsign_grad_gradient, {"gradients", "features"})
      .doc("Gradient of Softsign: gradients / (1 + |features|)².");
  backprop(r, "GeluGrad", kFloats, "features: T")
      .attr("approximate: bool = false")
      .gradient(gelu_grad_gradient, {"gradients", "features"})
      .doc("Gradient of Gelu: gradients times its slope at features.");
}

}  // namespace

void register_activation_ops(OpRegistry& r) {
  declare_relus(r);
  declare_smooth(r);
  declare_backprops(r);
  r.finish("activation");
}

}  // namespace treenail
