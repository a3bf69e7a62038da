// SPDX-License-Identifier: Apache-2.0
#include "framework/ops/tensor_list_rules.h"

#include <vector>

#include "framework/base/error.h"
#include "framework/ops/array_rules.h"

namespace treenail::tensor_list {

// --- Shapes -----------------------------------------------------------------------------------

namespace {

// The shape of elements that input i tells: extents, -1 where unknown; the scalar -1 says nothing.
PartialShape told_shape(const ShapeContext& c, int i) {
  const PartialValue* const value = c.value(i);
  if (value == nullptr || !value->scalar) {
    if (c.input(i).rank() == 0) return PartialShape();
    return c.shape_from_value(i);
  }
  if (value->elements[0].value_or(-1) != -1) {
    throw invalid_argument(
        "The only valid scalar shape tensor is the fully unknown shape "
        "specified as -1, not ",
        *value->elements[0]);
  }
  return PartialShape();
}

// What is known of the elements of the list that input i is. Errors: InvalidArgument for another
// dtype than the op's.
PartialShape element_shape(const ShapeContext& c, int i) {
  c.with_rank(i, 0);
  const HandleInfo* const known = c.handle(i);
  if (known == nullptr || known->dtype == DType::kInvalid) return PartialShape();
  if (c.op().def().attr_index("element_dtype") >= 0 &&
      known->dtype != c.op().get_type("element_dtype")) {
    throw invalid_argument("Expected list with element dtype ", c.op().get_type("element_dtype"),
                           " but got list with element dtype ", known->dtype);
  }
  return known->shape;
}

PartialShape element_shape(const ShapeContext& c, int i, int told) {
  return ShapeContext::merge(element_shape(c, i), told_shape(c, told),
                             "the elements of the list and element_shape");
}

void set_list(ShapeContext& c, const PartialShape& shape) {
  c.set_output(0, Shape());
  c.set_handle(0, {.dtype = c.op().get_type("element_dtype"), .shape = shape});
}

// The same list after a change that its elements do not see.
void same_list_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, Shape());
  if (c.handle(0) != nullptr) c.set_handle(0, *c.handle(0));
}

}  // namespace

void new_list_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  set_list(c, told_shape(c, 0));
}

namespace {

// `item`, the shape of something that is put into the list of input 0.
void put_into(ShapeContext& c, const PartialShape& item) {
  const PartialShape shape = element_shape(c, 0);
  ShapeContext::merge(shape, item, "the elements of the list and the new one");
  set_list(c, shape);
}

}  // namespace

void push_back_shape(ShapeContext& c) { put_into(c, c.input(1)); }

void set_item_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  put_into(c, c.input(2));
}

void pop_back_shape(ShapeContext& c) {
  const PartialShape shape = element_shape(c, 0, 1);
  set_list(c, element_shape(c, 0));
  c.set_output(1, shape);
}

void get_item_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  c.set_output(0, element_shape(c, 0, 2));
}

void unset_shape(ShapeContext& c) {
  if (c.input(1).rank() > 1) c.with_rank(1, 1);
  same_list_shape(c);
}

void resize_shape(ShapeContext& c) {
  c.with_rank(1, 0);
  same_list_shape(c);
}

void length_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, Shape());
}

void element_shape_shape(ShapeContext& c) {
  const PartialShape shape = element_shape(c, 0);
  if (shape.rank_known()) c.set_output(0, Shape({shape.rank()}));
}

namespace {

PartialShape rows_of(const PartialShape& element, int64_t rows) {
  return element.rank_known() ? element.inserted(0, rows) : PartialShape();
}

}  // namespace

void stack_shape(ShapeContext& c) {
  const int64_t rows = c.op().get_int("num_elements");
  if (rows < -1) throw invalid_argument("num_elements must be -1 or a number, got ", rows);
  c.set_output(0, rows_of(element_shape(c, 0, 1), rows));
}

void gather_shape(ShapeContext& c) {
  c.set_output(0, rows_of(element_shape(c, 0, 2), c.with_rank(1, 1)[0]));
}

namespace {

// The shape of one row of input i.
PartialShape row_of(const ShapeContext& c, int i) {
  const PartialShape rows = c.with_rank_at_least(i, 1);
  return rows.rank_known() ? rows.sub(1, rows.rank()) : PartialShape();
}

}  // namespace

void from_tensor_shape(ShapeContext& c) {
  set_list(c, ShapeContext::merge(told_shape(c, 1), row_of(c, 0),
                                  "element_shape and the rows of the tensor"));
}

namespace {

// Rows of input `tensor` and their places in the list.
void check_places(const ShapeContext& c, int tensor, int indices) {
  const int64_t rows = c.with_rank_at_least(tensor, 1).dim(0);
  const int64_t places = c.with_rank(indices, 1)[0];
  if (rows == kUnknown || places == kUnknown || rows == places) return;
  throw invalid_argument("Expected len(indices) == tensor.shape[0], but saw: ", places, " and ",
                         rows);
}

}  // namespace

void scatter_shape(ShapeContext& c) {
  check_places(c, 0, 1);
  if (c.num_inputs() == 4) c.with_rank(3, 0);
  const PartialShape shape = told_shape(c, 2);
  ShapeContext::merge(shape, row_of(c, 0), "element_shape and the rows of the tensor");
  set_list(c, shape);
}

void scatter_into_shape(ShapeContext& c) {
  check_places(c, 1, 2);
  put_into(c, row_of(c, 1));
}

void concat_shape(ShapeContext& c) {
  const bool input = c.num_inputs() > 1;
  const PartialShape told = input ? told_shape(c, 1) : c.op().get<PartialShape>("element_shape");
  const PartialShape shape =
      ShapeContext::merge(element_shape(c, 0), told, "the elements of the list and element_shape");
  if (input) c.with_rank(2, 1);
  if (shape.rank() == 0)
    throw invalid_argument(
        "Concat requires elements to be at least vectors, found scalars "
        "instead.");
  if (shape.rank_known()) c.set_output(0, shape.with_dim(0, kUnknown));
  c.set_output(1, PartialShape{kUnknown});
}

// What holds for elements of any number of rows of the tensor.
void split_shape(ShapeContext& c) {
  const PartialShape tensor = c.with_rank_at_least(0, 1);
  c.with_rank(2, 1);
  const PartialShape told = told_shape(c, 1);
  const PartialShape piece = tensor.rank_known() ? tensor.with_dim(0, kUnknown) : tensor;
  ShapeContext::merge(told, piece, "element_shape and the pieces of the tensor");
  set_list(c, told);
}

void concat_lists_shape(ShapeContext& c) {
  const PartialShape a = element_shape(c, 0), b = element_shape(c, 1);
  set_list(c, a.rank_known() && a == b ? a : PartialShape());
}

// --- Gradients --------------------------------------------------------------------------------

namespace {

NamedAttrs elements(const GradientContext& c) {
  return {{"element_dtype", c.op().get_type("element_dtype")}};
}

Value shape32(const GradientContext& c, int i) { return c.input_shape_value(i, DType::kInt32); }

// The shape of one row of input i.
Value row_shape(const GradientContext& c, int i) {
  const Value shape = shape32(c, i);
  return c.e.call("Slice", {shape, int_vector(c.e, {1}), int_vector(c.e, {-1})});
}

Value length_of(const GradientContext& c, Value list) {
  return c.e.call("TensorListLength", {list});
}

// A gradient of `length` elements, none of which anything has reached.
Value no_gradients(const GradientContext& c, Value length) {
  return c.e.call("TensorListReserve", {int_scalar(c.e, -1), length}, elements(c));
}

}  // namespace

void push_back_gradient(GradientContext& c) {
  const std::vector<Value> given = {c.gradient(), shape32(c, 1)};
  const std::vector<Value> popped = c.e.emit("TensorListPopBack", given, elements(c));
  c.set(0, popped[0]);
  c.set(1, popped[1]);
}

void pop_back_gradient(GradientContext& c) {
  const Value rest = c.has_gradient(0) ? c.gradient(0) : no_gradients(c, length_of(c, c.output(0)));
  if (c.has_gradient(1)) {
    c.set(0, c.e.call("TensorListPushBack", {rest, c.gradient(1)}));
    return;
  }
  const Value size = c.e.add(length_of(c, c.output(0)), int_scalar(c.e, 1));
  c.set(0, c.e.call("TensorListResize", {rest, size}));
}

void get_item_gradient(GradientContext& c) {
  const Value none = no_gradients(c, length_of(c, c.input(0)));
  c.set(0, c.e.call("TensorListSetItem", {none, c.input(1), c.gradient()}));
}

void set_item_gradient(GradientContext& c) {
  const Value gradient = c.gradient();
  if (c.needed(0)) c.set(0, c.e.call("TensorListUnset", {gradient, c.input(1)}));
  if (c.needed(2))
    c.set(2, c.e.call("TensorListGetItem", {gradient, c.input(1), shape32(c, 2)}, elements(c)));
}

void unset_gradient(GradientContext& c) {
  c.set(0, c.e.call("TensorListUnset", {c.gradient(), c.input(1)}));
}

void resize_gradient(GradientContext& c) {
  c.set(0, c.e.call("TensorListResize", {c.gradient(), length_of(c, c.input(0))}));
}

void stack_gradient(GradientContext& c) {
  const Value gradient = c.gradient();
  const Value shape = c.e.shape_of(gradient, DType::kInt32);
  const Value row = c.e.call("Slice", {shape, int_vector(c.e, {1}), int_vector(c.e, {-1})});
  c.set(0, c.e.call("TensorListFromTensor", {gradient, row}));
}

void from_tensor_gradient(GradientContext& c) {
  NamedAttrs attrs = elements(c);
  if (const int64_t rows = c.input_shape(0).dim(0); rows != kUnknown)
    attrs.emplace_back("num_elements", rows);
  c.set(0, c.e.call("TensorListStack", {c.gradient(), row_shape(c, 0)}, attrs));
}

// An index that is there several times is an element that was read as often.
void gather_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value list = c.input(0), indices = c.input(1), gradient = c.gradient();
  const std::vector<Value> given = {indices};
  const std::vector<Value> different = e.emit("Unique", given, {});
  const Value count = e.call("Size", {different[0]});
  const Value sums = e.call("UnsortedSegmentSum", {gradient, different[1], count});
  c.set(0,
        e.call("TensorListScatterV2", {sums, different[0], int_scalar(e, -1), length_of(c, list)}));
}

namespace {

// Of a tensor whose rows went to the places `indices`: those that later ones replaced have none.
Value scattered_rows(const GradientContext& c, Value gradient, int tensor, Value indices) {
  Emitter& e = c.e;
  const Value rows =
      e.call("TensorListGather", {gradient, indices, row_shape(c, tensor)}, elements(c));
  const std::vector<Value> given = {indices};
  const std::vector<Value> different = e.emit("Unique", given, {});
  const Value count = e.call("Size", {different[0]});
  const Value numbers =
      e.call("Range", {int_scalar(e, 0), e.call("Size", {indices}), int_scalar(e, 1)});
  const Value last = e.call("UnsortedSegmentMax", {numbers, different[1], count});
  const Value stays =
      e.call("Equal", {numbers, e.call("Gather", {last, different[1], int_scalar(e, 0)})});
  const Value ones = e.ones_like(row_shape(c, tensor));
  const Value column = e.call("Concat", {e.call("Shape", {indices}), ones, int_scalar(e, 0)});
  return e.call("Select", {e.reshape(stays, column), rows, e.zeros_like(rows)});
}

}  // namespace

void scatter_gradient(GradientContext& c) {
  c.set(0, scattered_rows(c, c.gradient(), 0, c.input(1)));
}

void scatter_into_gradient(GradientContext& c) {
  const Value gradient = c.gradient(), indices = c.input(2);
  if (c.needed(1)) c.set(1, scattered_rows(c, gradient, 1, indices));
  if (!c.needed(0)) return;
  const Value kept = c.e.call("TensorListUnset", {gradient, indices});
  c.set(0, c.e.call("TensorListResize", {kept, length_of(c, c.input(0))}));
}

void concat_gradient(GradientContext& c) {
  if (!c.has_gradient(0)) return;
  const Value gradient = c.gradient();
  c.set(0, c.e.call("TensorListSplit", {gradient, int_scalar(c.e, -1), c.output(1)}));
}

void split_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value minus = int_vector(e, {-1});
  const Value shape = e.call("Concat", {minus, row_shape(c, 0), int_scalar(e, 0)});
  c.set(0, e.call("TensorListConcatV2", {c.gradient(), shape, c.input(2)}, elements(c)));
}

void concat_lists_gradient(GradientContext&) {
  throw unimplemented("lists that are joined have no gradient; stack and concatenate tensors");
}

}  // namespace treenail::tensor_list
