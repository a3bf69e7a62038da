// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, TensorFlow's TensorList.
#include <string>

#include "framework/op/op_registry.h"
#include "framework/ops/tensor_list_rules.h"

namespace treenail {
namespace {

constexpr char kElement[] = "element_dtype: type";
constexpr char kShapeType[] = "shape_type: {int32, int64}";

void declare_makers(OpRegistry& r) {
  r.op("EmptyTensorList", HostAccess::kNone)
      .input("element_shape: shape_type")
      .input("max_num_elements: int32")
      .output("handle: variant")
      .attr(kElement)
      .attr(kShapeType)
      .allocates_outputs()
      .shape(tensor_list::new_list_shape)
      .not_differentiable()
      .doc(
          "An empty list of tensors.\n\n"
          "element_shape: what holds for every element, -1 where an extent is unknown, or the "
          "scalar -1. max_num_elements: how many may be pushed; -1: any number.");
  r.op("TensorListReserve", HostAccess::kNone)
      .input("element_shape: shape_type")
      .input("num_elements: int32")
      .output("handle: variant")
      .attr(kElement)
      .attr(kShapeType)
      .allocates_outputs()
      .shape(tensor_list::new_list_shape)
      .not_differentiable()
      .doc(
          "A list of `num_elements` tensors, none of which is set.\n\n"
          "element_shape: what holds for every element, -1 where an extent is unknown, or the "
          "scalar -1. An element that is not set reads as zeros where the shape is known. Errors: "
          "InvalidArgument for a negative number.");
  r.op("TensorListFromTensor", HostAccess::kNone)
      .input("tensor: element_dtype")
      .input("element_shape: shape_type")
      .output("output_handle: variant")
      .attr(kElement)
      .attr(kShapeType)
      .stored("tensor")
      .allocates_outputs()
      .shape(tensor_list::from_tensor_shape)
      .gradient(tensor_list::from_tensor_gradient)
      .doc(
          "The list of the rows of `tensor`, which share its memory.\n\n"
          "element_shape: what must hold for every row. Errors: InvalidArgument where it does "
          "not.");
}

void declare_items(OpRegistry& r) {
  r.op("TensorListGetItem", HostAccess::kNone)
      .input("input_handle: variant")
      .input("index: int32")
      .input("element_shape: int32")
      .output("item: element_dtype")
      .attr(kElement)
      .data_dependent_shape()
      .shape(tensor_list::get_item_shape)
      .gradient(tensor_list::get_item_gradient, {"input_handle", "index"})
      .doc(
          "Element `index` of a list; zeros where it is not set.\n\n"
          "element_shape: what is known of its shape. Errors: InvalidArgument for an index "
          "outside the list, an element of another shape, and one that is not set where neither "
          "element_shape nor another element tells its shape.");
  r.op("TensorListSetItem", HostAccess::kNone)
      .input("input_handle: variant")
      .input("index: int32")
      .input("item: element_dtype")
      .output("output_handle: variant")
      .attr(kElement)
      .stored("item")
      .allocates_outputs()
      .shape(tensor_list::set_item_shape)
      .gradient(tensor_list::set_item_gradient, {"index"})
      .doc(
          "The list with `item` as element `index`.\n\n"
          "Where nothing else reads the list, it is changed in place. Errors: InvalidArgument for "
          "an index outside the list, or an item of another dtype or shape.");
  r.op("TensorListUnset", HostAccess::kNone)
      .input("input_handle: variant")
      .input("indices: int32")
      .output("output_handle: variant")
      .allocates_outputs()
      .shape(tensor_list::unset_shape)
      .gradient(tensor_list::unset_gradient, {"indices"})
      .doc(
          "The list in which the elements `indices`, a scalar or vector, are not set.\n\n"
          "Where nothing else reads the list, it is changed in place. Errors: InvalidArgument for "
          "an index outside the list.");
}

void declare_ends(OpRegistry& r) {
  r.op("TensorListPushBack", HostAccess::kNone)
      .input("input_handle: variant")
      .input("tensor: element_dtype")
      .output("output_handle: variant")
      .attr(kElement)
      .stored("tensor")
      .allocates_outputs()
      .shape(tensor_list::push_back_shape)
      .gradient(tensor_list::push_back_gradient)
      .doc(
          "The list with one more element.\n\n"
          "Where nothing else reads the list, it is changed in place. Errors: InvalidArgument for "
          "a full list, and for a tensor of another dtype or shape.");
  r.op("TensorListPopBack", HostAccess::kNone)
      .input("input_handle: variant")
      .input("element_shape: int32")
      .output("output_handle: variant")
      .output("tensor: element_dtype")
      .attr(kElement)
      .data_dependent_shape()
      .shape(tensor_list::pop_back_shape)
      .gradient(tensor_list::pop_back_gradient, {"output_handle"})
      .doc(
          "The list without its last element, and that element; zeros where it is not set.\n\n"
          "element_shape: what is known of its shape. Errors: InvalidArgument for an empty list; "
          "as TensorListGetItem.");
  r.op("TensorListResize", HostAccess::kNone)
      .input("input_handle: variant")
      .input("size: int32")
      .output("output_handle: variant")
      .allocates_outputs()
      .shape(tensor_list::resize_shape)
      .gradient(tensor_list::resize_gradient, {"input_handle"})
      .doc(
          "The list with `size` elements: without its last ones, or with more that are not set.\n\n"
          "Errors: InvalidArgument for a negative size.");
}

void declare_questions(OpRegistry& r) {
  r.op("TensorListLength", HostAccess::kNone)
      .input("input_handle: variant")
      .output("length: int32")
      .allocates_outputs()
      .shape(tensor_list::length_shape)
      .not_differentiable()
      .doc("How many elements a list has.");
  r.op("TensorListElementShape", HostAccess::kNone)
      .input("input_handle: variant")
      .output("element_shape: shape_type")
      .attr(kShapeType)
      .data_dependent_shape()
      .shape(tensor_list::element_shape_shape)
      .not_differentiable()
      .doc(
          "What holds for the shapes of a list's elements: extents, -1 where unknown, or the "
          "scalar -1.");
}

void declare_stacks(OpRegistry& r) {
  r.op("TensorListStack", HostAccess::kNone)
      .input("input_handle: variant")
      .input("element_shape: int32")
      .output("tensor: element_dtype")
      .attr(kElement)
      .attr("num_elements: int = -1")
      .data_dependent_shape()
      .shape(tensor_list::stack_shape)
      .gradient(tensor_list::stack_gradient)
      .doc(
          "All elements of a list as rows of one tensor; zeros for those that are not set.\n\n"
          "element_shape: what is known of their shape. num_elements: how many there must be; -1: "
          "any number. Errors: InvalidArgument for elements of different shapes, and where "
          "nothing tells the shape of a row.");
  r.op("TensorListGather", HostAccess::kNone)
      .input("input_handle: variant")
      .input("indices: int32")
      .input("element_shape: int32")
      .output("values: element_dtype")
      .attr(kElement)
      .data_dependent_shape()
      .shape(tensor_list::gather_shape)
      .gradient(tensor_list::gather_gradient, {"input_handle", "indices"})
      .doc(
          "The elements `indices` of a list as rows of one tensor.\n\n"
          "indices: a vector. Otherwise as TensorListStack. Errors: InvalidArgument for an index "
          "outside the list, too.");
}

void declare_scatters(OpRegistry& r) {
  for (const bool sized : {false, true}) {
    OpDeclaration op = r.op(sized ? "TensorListScatterV2" : "TensorListScatter", HostAccess::kNone);
    op.input("tensor: element_dtype").input("indices: int32").input("element_shape: shape_type");
    if (sized) op.input("num_elements: int32");
    op.output("output_handle: variant")
        .attr(kElement)
        .attr(kShapeType)
        .stored("tensor")
        .allocates_outputs()
        .shape(tensor_list::scatter_shape)
        .gradient(tensor_list::scatter_gradient, {"indices"})
        .doc(std::string("A list with row i of `tensor` as element indices[i]; of one index the "
                         "last row stays, and what no index names is not set.\n\n"
                         "element_shape: what must hold for every row. ") +
             (sized ? "num_elements: the length of the list; -1: up to the largest index. " : "") +
             "Errors: InvalidArgument for a negative index" +
             (sized ? ", one beyond the length," : "") + " and for rows of another shape.");
  }
  r.op("TensorListScatterIntoExistingList", HostAccess::kNone)
      .input("input_handle: variant")
      .input("tensor: element_dtype")
      .input("indices: int32")
      .output("output_handle: variant")
      .attr(kElement)
      .stored("tensor")
      .allocates_outputs()
      .shape(tensor_list::scatter_into_shape)
      .gradient(tensor_list::scatter_into_gradient, {"input_handle", "indices"})
      .doc(
          "The list with row i of `tensor` as element indices[i]; of one index the last row "
          "stays.\n\n"
          "A list that ends before the largest index grows; where nothing else reads it, it is "
          "changed in place. Errors: InvalidArgument for a negative index and for rows of another "
          "shape.");
}

void declare_joins(OpRegistry& r) {
  constexpr char kDoc[] =
      "The elements of a list, one behind the other along the first axis, and their first "
      "extents.\n\n"
      "element_shape: what is known of their shapes. Errors: InvalidArgument for scalars, for "
      "elements that differ in other extents, and where nothing tells the shape of an element that "
      "is not set";
  r.op("TensorListConcat", HostAccess::kNone)
      .input("input_handle: variant")
      .output("tensor: element_dtype")
      .output("lengths: int64")
      .attr(kElement)
      .attr("element_shape: shape = { unknown_rank: true }")
      .data_dependent_shape()
      .shape(tensor_list::concat_shape)
      .gradient(tensor_list::concat_gradient, {"lengths"})
      .doc(std::string(kDoc) + ".");
  r.op("TensorListConcatV2", HostAccess::kNone)
      .input("input_handle: variant")
      .input("element_shape: shape_type")
      .input("leading_dims: int64")
      .output("tensor: element_dtype")
      .output("lengths: int64")
      .attr(kElement)
      .attr(kShapeType)
      .data_dependent_shape()
      .shape(tensor_list::concat_shape)
      .gradient(tensor_list::concat_gradient, {"lengths"})
      .doc(std::string(kDoc) + ". leading_dims: the first extents of elements that are not set.");
  r.op("TensorListSplit", HostAccess::kNone)
      .input("tensor: element_dtype")
      .input("element_shape: shape_type")
      .input("lengths: int64")
      .output("output_handle: variant")
      .attr(kElement)
      .attr(kShapeType)
      .stored("tensor")
      .allocates_outputs()
      .shape(tensor_list::split_shape)
      .gradient(tensor_list::split_gradient, {"lengths"})
      .doc(
          "The list of pieces of `tensor`, of `lengths` rows each, which share its memory.\n\n"
          "element_shape: what must hold for every piece. Errors: InvalidArgument for lengths "
          "that are negative or do not add up to the rows there are.");
  r.op("TensorListConcatLists", HostAccess::kNone)
      .input("input_a: variant")
      .input("input_b: variant")
      .output("output: variant")
      .attr(kElement)
      .allocates_outputs()
      .shape(tensor_list::concat_lists_shape)
      .gradient(tensor_list::concat_lists_gradient)
      .doc("The elements of one list and behind them those of another.");
}

}  // namespace

void register_tensor_list_ops(OpRegistry& r) {
  declare_makers(r);
  declare_items(r);
  declare_ends(r);
  declare_questions(r);
  declare_stacks(r);
  declare_scatters(r);
  declare_joins(r);
  r.finish("tensor_list");
}

}  // namespace treenail
