// SPDX-License-Identifier: Apache-2.0
// Cross products of vectors in space.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void cross_shape(ShapeContext& c) {
  const PartialShape a = c.with_rank_at_least(0, 1), b = c.with_rank_at_least(1, 1);
  for (int i = 0; i < 2; ++i) {
    const PartialShape& shape = i == 0 ? a : b;
    if (!shape.rank_known()) continue;
    const int64_t last = shape[shape.rank() - 1];
    if (last != 3 && last != kUnknown) {
      throw invalid_argument("cross products are of 3-element vectors in the last axis; ",
                             c.op().input_name(i), " has shape ", shape);
    }
  }
  if (!a.compatible(b)) {
    throw invalid_argument("a and b must have the same shape, got ", a, " and ", b);
  }
  const PartialShape both = ShapeContext::merge(a, b, "a and b");
  if (!both.rank_known()) return;
  c.set_output(0, both.with_dim(both.rank() - 1, 3));
}

// (da x b, g) = (da, b x g), (a x db, g) = (db, g x a).
void cross_gradient(GradientContext& c) {
  const Value g = c.gradient();
  if (c.needed(0)) c.set(0, c.e.call("Cross", {c.e.conj(c.input(1)), g}));
  if (c.needed(1)) c.set(1, c.e.call("Cross", {g, c.e.conj(c.input(0))}));
}

}  // namespace

void register_cross_ops(OpRegistry& r) {
  r.op("Cross", HostAccess::kNone)
      .input("a: T")
      .input("b: T")
      .output("product: T")
      .attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64, complex64, complex128}")
      .shape(cross_shape)
      .gradient(cross_gradient, {"a", "b"})
      .doc(
          R"(Cross products of the vectors of three numbers in the last axes of two equal shapes.

a, b and product are [..., 3]. Whole numbers wrap around; half and bfloat16 are computed in float.
Errors: InvalidArgument for shapes that differ or do not end with 3.)");
  r.finish("cross");
}

}  // namespace treenail
