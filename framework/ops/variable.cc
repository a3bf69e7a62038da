// SPDX-License-Identifier: Apache-2.0
// Variables: mutable tensors behind handles. A handle is a scalar of dtype resource; a gradient
// with respect to a handle is that of the variable's value. Updates by optimisers: training.cc;
// writes to chosen elements: gather.cc and slicing.cc.
#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/variable_rules.h"

namespace treenail {
namespace {

void handle_shape(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_handle(0, HandleInfo{c.op().get_type("dtype"), c.op().get<PartialShape>("shape")});
}

void read_shape(ShapeContext& c) { c.set_output(0, variable_shape(c, c.op().get_type("dtype"))); }

void read_gradient(GradientContext& c) { c.set(0, c.raw_gradient(0)); }

void assign_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, c.op().get_type("dtype"));
  if (!shape.compatible(c.input(1))) {
    throw invalid_argument(
        "the variable has shape ", shape, ", the value has shape ", c.input(1),
        ": only a variable made without a shape (validate_shape=False) takes it");
  }
}

void initialized_value_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, c.op().get_type("dtype"));
  c.set_output(0, ShapeContext::merge(shape, c.input(1), "the variable's shape and initial's"));
}

void is_initialized_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, Shape());
}

void destroy_shape(ShapeContext& c) { c.with_rank(0, 0); }

void variable_shape_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, DType::kInvalid);
  if (!shape.rank_known()) {
    c.set_output(0, PartialShape{kUnknown});
    return;
  }
  PartialValue value;
  for (int64_t dim : shape.dims()) {
    value.elements.push_back(dim == kUnknown ? std::nullopt : std::optional<int64_t>(dim));
  }
  c.set_output(0, PartialShape{shape.rank()});
  c.set_value(0, std::move(value));
}

void count_up_to_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, c.op().get_type("T"));
  if (shape.rank_known() && shape.rank() != 0)
    throw invalid_argument("a counter is a scalar, the variable has shape ", shape);
  c.set_output(0, Shape());
}

void resource_gather_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, c.op().get_type("dtype"));
  const PartialShape& indices = c.input(1);
  if (!shape.rank_known() || !indices.rank_known()) return;
  if (shape.rank() < 1)
    throw invalid_argument("params must be at least 1 dimensional, the variable is a scalar");
  c.set_output(0, indices.concatenated(shape.sub(1, shape.rank())));
}

void resource_gather_gradient(GradientContext& c) {
  if (!c.needed(0)) return;
  Emitter& e = c.e;
  const Value dense_shape = e.call("VariableShape", {c.input(0)});
  const Value row_shape = e.call("Slice", {dense_shape, int_vector(e, {1}), int_vector(e, {-1})});
  const Value count = e.reshape(e.call("Size", {c.input(1)}), int_vector(e, {1}));
  const Value values_shape = e.call("Concat", {count, row_shape, int_scalar(e, 0)});
  c.set(0, Gradient::slices(e.reshape(c.gradient(), values_shape), flattened(e, c.input(1)),
                            dense_shape));
}

void resource_scatter_shape(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, c.op().get_type("dtype"));
  const PartialShape& indices = c.input(1);
  const PartialShape& updates = c.input(2);
  if (!shape.rank_known() || !indices.rank_known() || !updates.rank_known()) return;
  if (shape.rank() < 1) throw invalid_argument("a scalar variable has no rows to update");
  if (updates.rank() == 0) return;  // one value for all
  const PartialShape wanted = indices.concatenated(shape.sub(1, shape.rank()));
  if (!updates.compatible(wanted)) {
    throw invalid_argument(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
        "updates.shape ",
        updates, ", indices.shape ", indices, ", params.shape ", shape);
  }
}

constexpr char kNumbers[] =
    "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
    "complex64, complex128}";
constexpr char kReals[] =
    "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";

void register_state(OpRegistry& r) {
  r.op("VarHandleOp", HostAccess::kNone)
      .output("resource: resource")
      .attr("container: string = ''")
      .attr("shared_name: string = ''")
      .attr("dtype: type")
      .attr("shape: shape")
      .stateful()
      .not_differentiable()
      .any_device()
      .shape(handle_shape)
      .doc(
          "The handle of the variable called `shared_name`, or as this operation when it is "
          "empty.\n\n"
          "The variable is made at first use, uninitialised. shape: what assigned values must "
          "match, unknown extents allowed.\n"
          "container: variables of the same name in different containers are different.\n"
          "In immediate execution an empty name gives a new variable each time, which lives as "
          "long as its handle.");
  r.op("ReadVariableOp", HostAccess::kNone)
      .input("resource: resource")
      .output("value: dtype")
      .attr("dtype: type")
      .stateful()
      .access("resource", Access::kRead)
      .allocates_outputs()
      .any_device()
      .shape(read_shape)
      .gradient(read_gradient)
      .doc(
          "The value of a variable. Later writes to the variable do not change it.\n\n"
          "Errors: FailedPrecondition when the variable is uninitialised.");
  r.op("VariableShape", HostAccess::kNone)
      .input("input: resource")
      .output("output: out_type")
      .attr("out_type: {int32, int64} = int32")
      .stateful()
      .access("input", Access::kRead)
      .allocates_outputs()
      .any_device()
      .host("output")
      .shape(variable_shape_shape)
      .not_differentiable()
      .doc(
          "The shape of a variable's value, an integer vector.\n\nErrors: FailedPrecondition when "
          "the variable is uninitialised.");
  r.op("VarIsInitializedOp", HostAccess::kNone)
      .input("resource: resource")
      .output("is_initialized: bool")
      .stateful()
      .access("resource", Access::kRead)
      .any_device()
      .host("is_initialized")
      .shape(is_initialized_shape)
      .not_differentiable()
      .doc("Whether the variable has a value, a scalar.");
  r.op("InitializedValue", HostAccess::kNone)
      .input("resource: resource")
      .input("initial: dtype")
      .output("value: dtype")
      .attr("dtype: type")
      .stateful()
      .access("resource", Access::kRead)
      .allocates_outputs()
      .any_device()
      .shape(initialized_value_shape)
      .not_differentiable()
      .doc(
          "The value of a variable, and `initial` while it has none.\n\n"
          "For the initial value of another variable.");
  r.op("DestroyResourceOp", HostAccess::kNone)
      .input("resource: resource")
      .attr("ignore_lookup_error: bool = true")
      .stateful()
      .access("resource", Access::kWrite)
      .any_device()
      .shape(destroy_shape)
      .not_differentiable()
      .doc(
          "Frees a variable's value: the variable is uninitialised afterwards.\n\n"
          "ignore_lookup_error: when false, a variable without a value is an error (NotFound).");
}

void register_assignments(OpRegistry& r) {
  const auto declare = [&](const char* name, std::string_view types, const char* doc) {
    return r.op(name, HostAccess::kNone)
        .input("resource: resource")
        .input("value: dtype")
        .attr(concat("dtype: ", types))
        .stateful()
        .access("resource", Access::kWrite)
        .shape(assign_shape)
        .not_differentiable()
        .doc(doc);
  };
  declare("AssignVariableOp", "type",
          "Gives a variable a new value.\n\nErrors: InvalidArgument when dtype or shape do not "
          "match the variable's.")
      .stored("value")
      .any_device();
  declare("AssignAddVariableOp", kNumbers,
          "Adds `value`, which has the variable's shape, to a variable.\n\nErrors: "
          "FailedPrecondition when it is uninitialised.");
  declare("AssignSubVariableOp", kNumbers,
          "Subtracts `value`, which has the variable's shape, from a variable.\n\n"
          "Errors: FailedPrecondition when it is uninitialised.");
}

void register_counter(OpRegistry& r) {
  r.op("ResourceCountUpTo", HostAccess::kNone)
      .input("resource: resource")
      .output("output: T")
      .attr("limit: int")
      .attr("T: {int32, int64}")
      .stateful()
      .access("resource", Access::kWrite)
      .shape(count_up_to_shape)
      .not_differentiable()
      .doc(
          "Adds one to a scalar variable and gives the value before, until that is `limit`.\n\n"
          "Errors: OutOfRange when the variable has reached limit, and is then left unchanged; "
          "FailedPrecondition when it is uninitialised.");
}

void register_rows(OpRegistry& r) {
  r.op("ResourceGather", HostAccess::kNone)
      .input("resource: resource")
      .input("indices: Tindices")
      .output("output: dtype")
      .attr("dtype: type")
      .attr("Tindices: {int32, int64}")
      .stateful()
      .access("resource", Access::kRead)
      .allocates_outputs()
      .shape(resource_gather_shape)
      .gradient(resource_gather_gradient, {"resource", "indices"})
      .doc(
          "Rows of a variable: output[i, ...] = variable[indices[i], ...], for indices of any "
          "shape.\n\n"
          "Its gradient is slices. Errors: InvalidArgument for an index outside the variable.");
  const struct {
    const char* name;
    const char* types;
    const char* doc;
  } scatters[] = {
      {"ResourceScatterUpdate", "type",
       "Replaces rows of a variable: variable[indices[i], ...] = updates[i, ...]."},
      {"ResourceScatterAdd", kNumbers,
       "Adds to rows of a variable: variable[indices[i], ...] += updates[i, ...]."},
      {"ResourceScatterSub", kNumbers,
       "Subtracts from rows of a variable: variable[indices[i], ...] -= updates[i, ...]."},
      {"ResourceScatterMul", kNumbers,
       "Multiplies rows of a variable: variable[indices[i], ...] *= updates[i, ...]."},
      {"ResourceScatterMin", kReals, "Lowers rows of a variable to at most updates[i, ...]."},
      {"ResourceScatterMax", kReals, "Raises rows of a variable to at least updates[i, ...]."},
  };
  for (const auto& scatter : scatters) {
    r.op(scatter.name, HostAccess::kNone)
        .input("resource: resource")
        .input("indices: Tindices")
        .input("updates: dtype")
        .attr(concat("dtype: ", scatter.types))
        .attr("Tindices: {int32, int64}")
        .stateful()
        .access("resource", Access::kWrite)
        .shape(resource_scatter_shape)
        .not_differentiable()
        .doc(concat(scatter.doc,
                    "\n\nupdates: shape indices.shape + variable.shape[1:], or a scalar. Repeated "
                    "indices are applied one after "
                    "the other.\nErrors: InvalidArgument for an index outside the variable, which "
                    "is then left unchanged; "
                    "FailedPrecondition when it is uninitialised."));
  }
}

}  // namespace

void register_variable_ops(OpRegistry& r) {
  register_state(r);
  register_assignments(r);
  register_counter(r);
  register_rows(r);
  r.finish("variable");
}

}  // namespace treenail
