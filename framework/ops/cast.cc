// SPDX-License-Identifier: Apache-2.0
// Values as another type: converted (Cast), or the same bits (Bitcast). And CheckNumerics, which
// hands its values on unless one is not finite. Loops: kernels/cpu/elementwise/conversion.cc; steps
// between any two types: kernels/host/elementwise/cast.cc.
#include <string>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void cast_shape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  const DType to = c.op().output_type(0);
  if (c.value(0) && is_integer(c.op().input_type(0)) &&
      (to == DType::kInt32 || to == DType::kInt64)) {
    c.set_value(0, *c.value(0));
  }
}

// Only between types that have gradients: an integer result has none.
void cast_gradient(GradientContext& c) {
  const DType from = c.op().input_type(0), to = c.op().output_type(0);
  const auto continuous = [](DType t) { return is_floating(t) || is_complex(t); };
  if (continuous(from) && continuous(to)) c.set(0, c.e.cast(c.gradient(), from));
}

// A wider type takes the last axis away, a narrower one adds one.
void bitcast_shape(ShapeContext& c) {
  const auto from = static_cast<int64_t>(dtype_size(c.op().input_type(0)));
  const auto to = static_cast<int64_t>(dtype_size(c.op().output_type(0)));
  const PartialShape& shape = c.input(0);
  if (from == to || !shape.rank_known()) {
    c.set_output(0, shape);
  } else if (from > to) {
    c.set_output(0, shape.inserted(shape.rank(), from / to));
  } else {
    const int64_t last = shape.rank() > 0 ? shape.dim(shape.rank() - 1) : 1;
    if (shape.rank() == 0 || (last != kUnknown && last != to / from)) {
      throw invalid_argument("cannot bitcast ", c.op().input_type(0), shape, " to ",
                             c.op().output_type(0), ": the last dimension must be ", to / from);
    }
    c.set_output(0, shape.sub(0, shape.rank() - 1));
  }
}

void check_numerics_gradient(GradientContext& c) {
  const std::string message = "Not a number (NaN) or infinity (Inf) values detected in gradient. " +
                              c.op().get_string("message");
  c.set(0, c.e.call("CheckNumerics", {c.gradient()}, {{"message", message}}));
}

}  // namespace

void register_cast_ops(OpRegistry& r) {
  r.op("Cast", HostAccess::kNone)
      .input("x: SrcT")
      .output("y: DstT")
      .attr("SrcT: {numbertype, bool}")
      .attr("DstT: {numbertype, bool}")
      .shape(cast_shape)
      .elementwise()
      .in_place("x", "y")
      .gradient(cast_gradient)
      .doc(
          "x converted to DstT.\n\n"
          "To a floating point type: the nearest value. From floating point to integers: toward "
          "zero, values beyond the "
          "type's range become its nearest end and NaN becomes 0, on every machine alike "
          "(docs/decisions/float-to-integer.md). Between integers: modulo 2^bits. "
          "To bool: whether not "
          "zero. From complex numbers the real part is taken (to bool: both parts count).");
  r.op("Bitcast", HostAccess::kNone)
      .input("input: T")
      .output("output: type")
      .attr("T: {numbertype, bool}")
      .attr("type: {numbertype, bool}")
      .shape(bitcast_shape)
      .in_place("input", "output")
      .not_differentiable()
      .doc(
          "The bits of input as another type, in the machine's byte order.\n\n"
          "A narrower type adds a last axis, to a wider one the last axis is taken away: its "
          "extent must be the ratio of "
          "the sizes. To bool, "
          "a byte other than 0 is true.");
  r.op("CheckNumerics", HostAccess::kNone)
      .input("tensor: T")
      .output("output: T")
      .attr("T: {half, bfloat16, float, double}")
      .attr("message: string")
      .shape(unchanged_shape)
      .in_place("tensor", "output")
      .gradient(check_numerics_gradient)
      .doc(
          "tensor itself, if all its elements are finite.\n\n"
          "Errors: InvalidArgument \"<message> : Tensor had NaN values\" (\"Inf values\", \"Inf "
          "and NaN values\").");
  r.finish("cast");
}

}  // namespace treenail
