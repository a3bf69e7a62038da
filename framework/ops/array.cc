// SPDX-License-Identifier: Apache-2.0
// Where values come from: constants, placeholders, fills and sequences; and the ops that hand a
// value on unchanged. Shapes and their arithmetic: shape.cc.
#include <cmath>
#include <limits>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

// Longer sequences are left to the kernel: shapes and axes are short.
constexpr int64_t kMaxValueLength = 256;

// --- Sources ----------------------------------------------------------------------------------

void const_shape(ShapeContext& c) {
  const Tensor& value = c.op().get<Tensor>("value");
  if (!value.defined()) throw invalid_argument("attribute \"value\" holds no tensor");
  if (value.dtype() != c.op().get_type("dtype")) {
    throw invalid_argument("attribute \"value\" is ", value, ", but attribute \"dtype\" says ",
                           c.op().get_type("dtype"));
  }
  c.set_output(0, value.shape());
  c.set_constant(0, value);
}

void placeholder_shape(ShapeContext& c) { c.set_output(0, c.op().get<PartialShape>("shape")); }

void placeholder_with_default_shape(ShapeContext& c) {
  const PartialShape& declared = c.op().get<PartialShape>("shape");
  if (!declared.compatible(c.input(0))) {
    throw invalid_argument("the default has shape ", c.input(0),
                           ", which does not match the declared shape ", declared);
  }
  c.set_output(0, declared);
}

// --- The same value ---------------------------------------------------------------------------

void identity_gradient(GradientContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set(i, c.raw_gradient(i));
}

void prevented_gradient(GradientContext& c) {
  throw failed_precondition("gradient explicitly disabled. Reason: ", c.op().get_string("message"));
}

// For whom does not know the program's function.
void gradient_of_a_program(GradientContext& c) {
  throw unimplemented("the gradient is a function of the program that made the graph, \"",
                      c.op().get_string("function"), "\"");
}

// --- Fills ------------------------------------------------------------------------------------

void fill_shape(ShapeContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 0);
  const PartialShape shape = extents_from_value(c, 0);
  c.set_output(0, shape);
  const PartialValue* element = c.value(1);
  const bool short_vector = shape.rank_known() && shape.rank() <= 1 && shape.fully_known() &&
                            shape.num_elements() <= kMaxValueLength;
  if (element == nullptr || element->elements.size() != 1 || !short_vector) return;
  PartialValue value;
  value.scalar = shape.rank() == 0;
  value.elements.assign(static_cast<size_t>(shape.num_elements()), element->elements[0]);
  c.set_value(0, std::move(value));
}

void fill_gradient(GradientContext& c) {
  if (!c.needed(1)) return;
  const int64_t minus_one[] = {-1};
  const int64_t zero[] = {0};
  const Value flat = c.e.reshape(c.gradient(), c.e.const_ints(DType::kInt32, minus_one));
  c.set(1, c.e.call("Sum", {flat, c.e.const_ints(DType::kInt32, zero)}));
}

// --- Sequences --------------------------------------------------------------------------------

double real_scalar(const Tensor& t) {
  switch (t.dtype()) {
    case DType::kFloat32:
      return *t.data<float>();
    case DType::kFloat64:
      return *t.data<double>();
    case DType::kFloat16:
      return static_cast<float>(*t.data<Float16>());
    case DType::kBFloat16:
      return static_cast<float>(*t.data<BFloat16>());
    default:
      return static_cast<double>(scalar_int64(t));
  }
}

int64_t integer_range_length(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) throw invalid_argument("Requires delta != 0: 0");
  if (delta > 0 ? start > limit : start < limit) {
    throw invalid_argument("Requires start ", delta > 0 ? "<=" : ">=", " limit when delta ",
                           delta > 0 ? ">" : "<", " 0: ", start, "/", limit);
  }
  // In unsigned arithmetic: the distance between two int64 may exceed int64.
  const uint64_t distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                      : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step =
      delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  const uint64_t length = distance / step + (distance % step != 0 ? 1 : 0);
  if (length > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw invalid_argument("the range from ", start, " to ", limit, " by ", delta,
                           " has too many elements");
  }
  return static_cast<int64_t>(length);
}

int64_t real_range_length(double start, double limit, double delta) {
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta)) {
    throw invalid_argument("Requires finite start, limit and delta: ", start, "/", limit, "/",
                           delta);
  }
  if (delta == 0) throw invalid_argument("Requires delta != 0: 0");
  if (delta > 0 ? start > limit : start < limit) {
    throw invalid_argument("Requires start ", delta > 0 ? "<=" : ">=", " limit when delta ",
                           delta > 0 ? ">" : "<", " 0: ", start, "/", limit);
  }
  const double length = std::ceil(std::abs((limit - start) / delta));
  if (!(length < 9.0e18))
    throw invalid_argument("the range from ", start, " to ", limit, " by ", delta,
                           " has too many elements");
  return static_cast<int64_t>(length);
}

void range_shape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) c.with_rank(i, 0);
  if (is_floating(c.op().get_type("Tidx"))) {
    if (c.constant(0) == nullptr || c.constant(1) == nullptr || c.constant(2) == nullptr) {
      c.set_output(0, PartialShape{kUnknown});
      return;
    }
    c.set_output(
        0, PartialShape{real_range_length(real_scalar(*c.constant(0)), real_scalar(*c.constant(1)),
                                          real_scalar(*c.constant(2)))});
    return;
  }
  for (int i = 0; i < 3; ++i) {
    if (c.value(i) == nullptr || !c.value(i)->fully_known() || c.value(i)->elements.size() != 1) {
      c.set_output(0, PartialShape{kUnknown});
      return;
    }
  }
  const int64_t start = *c.value(0)->elements[0];
  const int64_t delta = *c.value(2)->elements[0];
  const int64_t length = integer_range_length(start, *c.value(1)->elements[0], delta);
  c.set_output(0, PartialShape{length});
  if (length > kMaxValueLength) return;
  PartialValue value;
  for (int64_t i = 0; i < length; ++i) value.elements.emplace_back(start + i * delta);
  c.set_value(0, std::move(value));
}

void linspace_shape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) c.with_rank(i, 0);
  const PartialValue* num = c.value(2);
  if (num == nullptr || num->elements.size() != 1 || !num->elements[0]) {
    c.set_output(0, PartialShape{kUnknown});
    return;
  }
  if (*num->elements[0] <= 0) throw invalid_argument("Requires num > 0: ", *num->elements[0]);
  c.set_output(0, PartialShape{*num->elements[0]});
}

void one_hot_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  c.with_rank(2, 0);
  c.with_rank(3, 0);
  const PartialShape& indices = c.input(0);
  const int64_t axis = c.op().get_int("axis");
  if (axis < -1) throw invalid_argument("axis must be >= -1, got ", axis);
  if (!indices.rank_known()) {
    c.set_output(0, PartialShape());
    return;
  }
  if (axis > indices.rank()) {
    throw invalid_argument("Expected axis to be -1 or between [0, ", indices.rank() + 1,
                           "), but received ", axis);
  }
  const PartialValue* depth = c.value(1);
  int64_t extent = kUnknown;
  if (depth != nullptr && depth->elements.size() == 1 && depth->elements[0]) {
    extent = *depth->elements[0];
    if (extent < 0) throw invalid_argument("depth must be non-negative, got: ", extent);
  }
  c.set_output(0, indices.inserted(axis < 0 ? indices.rank() : static_cast<int>(axis), extent));
}

void ensure_shape_shape(ShapeContext& c) {
  const PartialShape& expected = c.op().get<PartialShape>("shape");
  if (!expected.compatible(c.input(0))) {
    throw invalid_argument("Shape of tensor input ", c.input(0),
                           " is not compatible with expected shape ", expected);
  }
  identity_shape(c);
  c.set_output(0, ShapeContext::merge(c.input(0), expected, "the shapes of input and expected"));
}

void register_sources(OpRegistry& r) {
  r.op("Const", HostAccess::kNone)
      .output("output: dtype")
      .attr("value: tensor")
      .attr("dtype: type")
      .any_device()
      .host("output")
      .shape(const_shape)
      .not_differentiable()
      .allocates_outputs()
      .doc("A constant tensor.\n\nvalue: the tensor; dtype: its element type.");
  r.op("Placeholder", HostAccess::kNone)
      .output("output: dtype")
      .attr("dtype: type")
      .attr("shape: shape = { unknown_rank: true }")
      .any_device()
      .host("output")
      .shape(placeholder_shape)
      .stateful()
      .not_differentiable()
      .allocates_outputs()
      .doc(
          "A value that every run must feed.\n\nshape: what fed values must match; unknown rank "
          "accepts any.\n"
          "Errors: InvalidArgument when it is used without being fed.");
  r.op("PlaceholderWithDefault", HostAccess::kNone)
      .input("input: dtype")
      .output("output: dtype")
      .attr("dtype: type")
      .attr("shape: shape")
      .any_device()
      .shape(placeholder_with_default_shape)
      .data_dependent_shape()
      .gradient(identity_gradient)
      .doc(
          "A value that a run may feed; otherwise it is `input`.\n\nshape: what fed values and "
          "`input` must match.");
}

void register_hand_on(OpRegistry& r) {
  r.op("Identity", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("T: type")
      .shape(identity_shape)
      .view_of("input")
      .gradient(identity_gradient)
      .doc("The same value, under a name of its own.");
  r.op("EnsureShape", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("shape: shape")
      .attr("T: type")
      .shape(ensure_shape_shape)
      .view_of("input")
      .gradient(identity_gradient)
      .doc(
          "The same value, whose shape is checked in every run.\n\nshape: what it must match; "
          "unknown extents match any. The result's shape is known as far as either is. Errors: "
          "InvalidArgument where the shapes do not match.");
  r.op("IdentityN", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("T: list(type)")
      .shape(identity_shape)
      .gradient(identity_gradient)
      .doc("The same values: output i is input i, available once all inputs are.");
  r.op("CustomGradient", HostAccess::kNone)
      .input("values: T")
      .input("arguments: Targuments")
      .output("outputs: T")
      .attr("T: list(type)")
      .attr("Targuments: list(type) >= 0")
      .attr("function: string")
      .shape(identity_shape)
      .gradient(gradient_of_a_program)
      .doc(
          "The same values; their gradient is the program's own, which gives one for each of "
          "`arguments` (tn.custom_gradient).\n\nfunction: what the program knows it by. A run "
          "computes no `arguments` for this operation.");
  r.op("StopGradient", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("T: type")
      .shape(identity_shape)
      .view_of("input")
      .not_differentiable()
      .doc("The same value, taken as a constant by gradients.");
  r.op("PreventGradient", HostAccess::kNone)
      .input("input: T")
      .output("output: T")
      .attr("T: type")
      .attr("message: string = ''")
      .shape(identity_shape)
      .view_of("input")
      .gradient(prevented_gradient)
      .doc(
          "The same value; asking for a gradient through it is an error whose text ends with "
          "`message`.");
}

void register_fills(OpRegistry& r) {
  r.op("Fill", HostAccess::kNone)
      .input("dims: index_type")
      .input("value: T")
      .output("output: T")
      .attr("T: type")
      .attr("index_type: {int32, int64} = int32")
      .host("dims")
      .shape(fill_shape)
      .gradient(fill_gradient)
      .doc("A tensor of shape `dims` in which every element is the scalar `value`.");
  r.op("ZerosLike", HostAccess::kNone)
      .input("x: T")
      .output("y: T")
      .attr("T: type")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "Zeros (false, empty strings) in the shape of `x`, whose value is not read; of a list, "
          "as "
          "many elements that are not set.");
  r.op("OnesLike", HostAccess::kNone)
      .input("x: T")
      .output("y: T")
      .attr(
          "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
          "uint64, complex64, complex128, bool}")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc("Ones (true) in the shape of `x`, whose value is not read.");
}

void register_sequences(OpRegistry& r) {
  r.op("Range", HostAccess::kNone)
      .input("start: Tidx")
      .input("limit: Tidx")
      .input("delta: Tidx")
      .output("output: Tidx")
      .attr("Tidx: {bfloat16, half, float, double, int32, int64} = int32")
      .host("start")
      .host("limit")
      .host("delta")
      .shape(range_shape)
      .not_differentiable()
      .doc(
          "The numbers start, start + delta, start + 2 delta, ... up to but without `limit`.\n\n"
          "Errors: InvalidArgument when delta is 0 or leads away from `limit`.");
  r.op("LinSpace", HostAccess::kNone)
      .input("start: T")
      .input("stop: T")
      .input("num: Tidx")
      .output("output: T")
      .attr("T: {bfloat16, half, float, double}")
      .attr("Tidx: {int32, int64} = int32")
      .host("num")
      .shape(linspace_shape)
      .not_differentiable()
      .doc(
          "`num` evenly spaced numbers from `start` to `stop`, both included.\n\nErrors: "
          "InvalidArgument unless num > 0.");
  r.op("OneHot", HostAccess::kNone)
      .input("indices: TI")
      .input("depth: int32")
      .input("on_value: T")
      .input("off_value: T")
      .output("output: T")
      .attr("axis: int = -1")
      .attr("T: type")
      .attr("TI: {uint8, int32, int64} = int64")
      .host("depth")
      .shape(one_hot_shape)
      .not_differentiable()
      .doc(
          "One-hot vectors: along a new axis of extent `depth`, element `indices` is on_value, the "
          "rest off_value.\n\n"
          "axis: place of the new axis, -1 for last. An index outside [0, depth) gives a vector of "
          "off_value.");
}

}  // namespace

void register_array_ops(OpRegistry& r) {
  register_sources(r);
  register_hand_on(r);
  register_fills(r);
  register_sequences(r);
  r.finish("array");
}

}  // namespace treenail
