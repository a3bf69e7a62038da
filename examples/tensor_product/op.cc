// SPDX-License-Identifier: Apache-2.0
// The tensor product of SO(3) as an op of one's own, in TensorFlow's style: vectors of degrees l1
// and l2 are multiplied, and of the product the part of degree L is kept. Whoever rotates x and y
// rotates z. For l1 = l2 = L = 1 it is the cross product / sqrt(2). This file says what the op is;
// kernel.cc computes it.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <treenail/op.hpp>

#include "clebsch_gordan.h"

using namespace tn::op;

namespace {

Status TensorProductShape(InferenceContext* c) {
  int l1 = 0, l2 = 0, l = 0;
  TREENAIL_RETURN_IF_ERROR(c->GetAttr("l1", &l1));
  TREENAIL_RETURN_IF_ERROR(c->GetAttr("l2", &l2));
  TREENAIL_RETURN_IF_ERROR(c->GetAttr("L", &l));
  if (l < std::abs(l1 - l2) || l > l1 + l2 || std::max(l, std::max(l1, l2)) > so3::kMostDegree)
    return errors::InvalidArgument("degree ", l, " is not in a product of degrees ", l1, " and ",
                                   l2, ": |l1 - l2| <= L <= l1 + l2 is needed, and none beyond ",
                                   so3::kMostDegree);
  ShapeHandle x, y, z;
  TREENAIL_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 1, &x));
  TREENAIL_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(1), 1, &y));
  DimensionHandle dim;
  TREENAIL_RETURN_IF_ERROR(c->WithValue(c->Dim(x, -1), 2 * l1 + 1, &dim));
  TREENAIL_RETURN_IF_ERROR(c->WithValue(c->Dim(y, -1), 2 * l2 + 1, &dim));
  TREENAIL_RETURN_IF_ERROR(c->ReplaceDim(x, -1, 2 * l + 1, &x));
  TREENAIL_RETURN_IF_ERROR(c->ReplaceDim(y, -1, 2 * l + 1, &y));
  TREENAIL_RETURN_IF_ERROR(c->Merge(x, y, &z));
  c->set_output(0, z);
  return Status::OK();
}

// The coefficients with three indices are the same under cyclic exchange but for their length, so
// both gradients are tensor products again; and gradients of gradients follow.
Status TensorProductGrad(GradientContext* c) {
  const int degree[] = {c->attr<int>("l1"), c->attr<int>("l2"), c->attr<int>("L")};
  const Value x = c->input(0), y = c->input(1), dz = c->grad(0);
  const auto part = [&](const Value& a, int la, const Value& b, int lb, int l) {
    const double length = std::sqrt((2 * degree[2] + 1.0) / (2 * l + 1.0));
    const Value z =
        c->Emit("TensorProduct", {a, b}, Attrs().Set("l1", la).Set("l2", lb).Set("L", l));
    return c->Emit("Mul", {z, c->Scalar(z.dtype(), length)});
  };
  if (c->needed(0)) c->set(0, part(y, degree[1], dz, degree[2], degree[0]));
  if (c->needed(1)) c->set(1, part(dz, degree[2], x, degree[0], degree[1]));
  return Status::OK();
}

}  // namespace

TREENAIL_REGISTER_OP("TensorProduct")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("l1: int >= 0")
    .Attr("l2: int >= 0")
    .Attr("L: int >= 0")
    .Attr("T: {float, double}")
    .SetShapeFn(TensorProductShape)
    .SetGradientFn(TensorProductGrad, {"x", "y"})
    .Doc(
        "The part of degree L of the product of vectors of degrees l1 and l2, along the last "
        "axis.");
TREENAIL_PLUGIN("tensor_product", "1.0");
