// SPDX-License-Identifier: Apache-2.0
// Shape rules and gradients of the ops of tensor_list.cc. What is known of a list's elements stands
// in its handle. Gradients of lists are lists, in which unset elements stand for none.
#pragma once

#include "framework/op/gradient.h"
#include "framework/op/shape_context.h"

namespace treenail::tensor_list {

void new_list_shape(ShapeContext& c);
void from_tensor_shape(ShapeContext& c);
void from_tensor_gradient(GradientContext& c);
void get_item_shape(ShapeContext& c);
void get_item_gradient(GradientContext& c);
void set_item_shape(ShapeContext& c);
void set_item_gradient(GradientContext& c);
void unset_shape(ShapeContext& c);
void unset_gradient(GradientContext& c);
void push_back_shape(ShapeContext& c);
void push_back_gradient(GradientContext& c);
void pop_back_shape(ShapeContext& c);
void pop_back_gradient(GradientContext& c);
void resize_shape(ShapeContext& c);
void resize_gradient(GradientContext& c);
void length_shape(ShapeContext& c);
void element_shape_shape(ShapeContext& c);
void stack_shape(ShapeContext& c);
void stack_gradient(GradientContext& c);
void gather_shape(ShapeContext& c);
void gather_gradient(GradientContext& c);
void scatter_shape(ShapeContext& c);
void scatter_gradient(GradientContext& c);
void scatter_into_shape(ShapeContext& c);
void scatter_into_gradient(GradientContext& c);
void concat_shape(ShapeContext& c);
void concat_gradient(GradientContext& c);
void split_shape(ShapeContext& c);
void split_gradient(GradientContext& c);
void concat_lists_shape(ShapeContext& c);
void concat_lists_gradient(GradientContext& c);

}  // namespace treenail::tensor_list
