// SPDX-License-Identifier: Apache-2.0
// Softmax over the last axis, and the cross-entropy losses computed with it. Computed in
// kernels/cpu/normalization/softmax.cc.
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

void softmax_shape(ShapeContext& c) { c.set_output(0, c.with_rank_at_least(0, 1)); }

// The sum over `axis`, kept as an axis of extent 1.
Value row_sum(Emitter& e, Value x, int64_t axis) {
  return e.call("Sum", {x, e.const_ints(DType::kInt32, {&axis, 1})}, {{"keep_dims", true}});
}

// y = softmax(x): dx = (g - sum(g y)) y.
void softmax_gradient(GradientContext& c) {
  const Value y = c.output(0), g = c.gradient();
  c.set(0, c.e.mul(c.e.sub(g, row_sum(c.e, c.e.mul(g, y), -1)), y));
}

// y = log(softmax(x)): dx = g - sum(g) exp(y).
void log_softmax_gradient(GradientContext& c) {
  const Value g = c.gradient();
  c.set(0, c.e.sub(g, c.e.mul(row_sum(c.e, g, -1), c.e.call("Exp", {c.output(0)}))));
}

void cross_entropy_shape(ShapeContext& c) {
  const PartialShape logits = c.with_rank(0, 2), labels = c.with_rank(1, 2);
  if (!logits.compatible(labels)) {
    throw invalid_argument("logits and labels must be same size: logits_size=", logits,
                           " labels_size=", labels);
  }
  const PartialShape both = ShapeContext::merge(logits, labels, "logits and labels");
  c.set_output(0, PartialShape({both.dim(0)}));
  c.set_output(1, both);
}

void sparse_cross_entropy_shape(ShapeContext& c) {
  const PartialShape logits = c.with_rank(0, 2), labels = c.with_rank(1, 1);
  const int64_t rows = logits.dim(0), count = labels.dim(0);
  if (rows != kUnknown && count != kUnknown && rows != count) {
    throw invalid_argument(
        "logits and labels must have the same first dimension, got logits shape ", logits,
        " and labels shape ", labels);
  }
  const int64_t batch = rows != kUnknown ? rows : count;
  c.set_output(0, PartialShape({batch}));
  c.set_output(1, PartialShape({batch, logits.dim(1)}));
}

// One number per row times the rows of a matrix.
Value scale_rows(Emitter& e, Value per_row, Value matrix) {
  const Value axis = e.const_tensor(Tensor::scalar<int32_t>(-1));
  return e.mul(e.call("ExpandDims", {per_row, axis}), matrix);
}

// d loss / d logits is the second output; the gradient that arrives at that output itself (a second
// derivative) passes through the softmax's Jacobian: (g - sum(g s)) s.
Value cross_entropy_logits_gradient(GradientContext& c) {
  Value sum;
  if (c.has_gradient(0)) sum = scale_rows(c.e, c.gradient(0), c.output(1));
  if (c.has_gradient(1)) {
    const Value g = c.gradient(1), s = c.e.call("Softmax", {c.input(0)});
    const Value second = c.e.mul(c.e.sub(g, row_sum(c.e, c.e.mul(g, s), 1)), s);
    sum = sum.valid() ? c.e.add(sum, second) : second;
  }
  return sum;
}

void cross_entropy_gradient(GradientContext& c) {
  if (c.needed(0)) c.set(0, cross_entropy_logits_gradient(c));
  if (!c.needed(1)) return;
  // loss = -sum(labels log_softmax(logits)); backprop = softmax(logits) - labels.
  Value sum;
  if (c.has_gradient(0)) {
    sum = scale_rows(c.e, c.gradient(0), c.e.neg(c.e.call("LogSoftmax", {c.input(0)})));
  }
  if (c.has_gradient(1)) {
    const Value g = c.gradient(1);
    sum = sum.valid() ? c.e.sub(sum, g) : c.e.neg(g);
  }
  c.set(1, sum);
}

void sparse_cross_entropy_gradient(GradientContext& c) {
  if (c.needed(0)) c.set(0, cross_entropy_logits_gradient(c));
}

}  // namespace

void register_softmax_ops(OpRegistry& r) {
  r.op("Softmax", HostAccess::kNone)
      .input("logits: T")
      .output("softmax: T")
      .attr("T: {half, bfloat16, float, double}")
      .in_place("logits", "softmax")
      .shape(softmax_shape)
      .gradient(softmax_gradient, {"softmax"})
      .doc(R"(Computes softmax over the last axis: exp(x) / sum(exp(x)).

logits has rank 1 or more; the output has its shape and each row sums to 1. The row's maximum is subtracted first, so that
nothing overflows; a row with NaN or +inf becomes NaN.)");

  r.op("LogSoftmax", HostAccess::kNone)
      .input("logits: T")
      .output("logsoftmax: T")
      .attr("T: {half, bfloat16, float, double}")
      .in_place("logits", "logsoftmax")
      .shape(softmax_shape)
      .gradient(log_softmax_gradient, {"logsoftmax"})
      .doc(R"(Computes the logarithm of softmax over the last axis: x - log(sum(exp(x))).

logits has rank 1 or more; the output has its shape. More accurate than Log of Softmax where probabilities are small.)");

  r.op("SoftmaxCrossEntropyWithLogits", HostAccess::kNone)
      .input("features: T")
      .input("labels: T")
      .output("loss: T")
      .output("backprop: T")
      .attr("T: {half, bfloat16, float, double}")
      .in_place("features", "backprop")
      .shape(cross_entropy_shape)
      .gradient(cross_entropy_gradient, {"features", "backprop"})
      .doc(R"(Computes the cross entropy between rows of probabilities and softmax of the logits.

features and labels are [batch, classes]; each row of labels is a distribution: it sums to 1. loss, [batch], is
-sum(labels * log(softmax(features))), where a label of 0 contributes 0 even to a logit of -inf. backprop,
[batch, classes], is softmax(features) - labels, the gradient of each loss with respect to its row of features.
Errors: InvalidArgument when the shapes differ or are not of rank 2.)");

  r.op("SparseSoftmaxCrossEntropyWithLogits", HostAccess::kNone)
      .input("features: T")
      .input("labels: Tlabels")
      .output("loss: T")
      .output("backprop: T")
      .attr("T: {half, bfloat16, float, double}")
      .attr("Tlabels: {int32, int64} = int64")
      .in_place("features", "backprop")
      .shape(sparse_cross_entropy_shape)
      .gradient(sparse_cross_entropy_gradient, {"features", "backprop"})
      .doc(R"(Computes the cross entropy of softmax of the logits with one class per row.

features is [batch, classes], labels holds a class in [0, classes) for each row. loss, [batch], is
-log(softmax(features)[label]); backprop, [batch, classes], is softmax(features) with 1 subtracted at the label.
Errors: InvalidArgument for a label outside [0, classes), or when batch sizes differ.)");

  r.finish("softmax");
}

}  // namespace treenail
