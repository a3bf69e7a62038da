// SPDX-License-Identifier: Apache-2.0
// The loop that goes back through a While: its values are the count of iterations that are left,
// lists of what each kept, gradients, and what stays the same.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/graph/loop_gradient.h"
#include "framework/graph/row_gradients.h"

namespace treenail {
namespace {

std::vector<Output> outputs_of(const GraphEmitter& e, std::span<const Value> values) {
  std::vector<Output> outputs;
  for (const Value& value : values) outputs.push_back(e.output_of(value));
  return outputs;
}

}  // namespace

// What a step gives for input i: its gradient, or rows and their numbers; or of each slice of what
// stays the same where it is and what is to be added there, for zeros in the shape of the whole
// would cost in every iteration what the whole does.
std::vector<Output> LoopGradient::step_results(size_t i) const {
  if (has_rows(i)) return {l_.rows[i].values, l_.rows[i].indices};
  if (slices_[i].empty()) return {l_.gradients[i]};
  std::vector<Output> results;
  for (const Node* slice : slices_[i])
    for (int k = 1; k < 5; ++k) results.push_back(slice->input(k));
  return results;
}

Value LoopGradient::with_slices(GraphEmitter& e, size_t i, Value sum,
                                std::span<const Value> made) const {
  for (const Node* slice : slices_[i]) {
    NamedAttrs masks;
    for (const char* name :
         {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
      masks.emplace_back(name, slice->op().get_int(name));
    sum = e.call("TensorStridedSliceAdd", {sum, made[0], made[1], made[2], made[3]}, masks);
    made = made.subspan(4);
  }
  return sum;
}

// One iteration backwards: (invariants, captured, kept, gradients of results) to (gradients of
// wants_).
void LoopGradient::add_backward_step() {
  std::vector<Output> inputs, outputs;
  for (const size_t i : invariants_) inputs.push_back(l_.inputs[i]);
  for (const CapturedValue& value : l_.captured) inputs.push_back(value.inside);
  inputs.insert(inputs.end(), kept_.begin(), kept_.end());
  inputs.insert(inputs.end(), l_.incoming.begin(), l_.incoming.end());
  for (const size_t i : wants_) {
    const std::vector<Output> results = step_results(i);
    outputs.insert(outputs.end(), results.begin(), results.end());
  }
  backward_step_ =
      add_function(library_, body_name_ + "_backward", l_.body, inputs, outputs, l_.rules);
}

// The backward loop's values: count, lists, gradients (two lists for rows), invariants, captured.
std::vector<Output> LoopGradient::backward_arguments(Graph& graph) {
  std::vector<Output> arguments{add_placeholder(graph, "count", DType::kInt32, Shape())};
  for (size_t i = 0; i < kept_.size(); ++i)
    arguments.push_back(add_placeholder(graph, "list", DType::kVariant, Shape()));
  for (const size_t i : wants_) {
    if (has_rows(i)) {
      for (const char* name : {"values", "indices"})
        arguments.push_back(add_placeholder(graph, name, DType::kVariant, Shape()));
      continue;
    }
    const Output& like = is_carried(i) ? l_.inputs[i] : l_.gradients[i];
    arguments.push_back(
        add_placeholder(graph, "gradient", dtype_of(l_.gradients[i]), info_of(like).shape));
  }
  for (const size_t i : invariants_)
    arguments.push_back(add_placeholder_like(graph, "invariant", l_.inputs[i]));
  for (const CapturedValue& value : l_.captured)
    arguments.push_back(add_placeholder_like(graph, "captured", value.inside));
  return arguments;
}

std::string LoopGradient::add_backward_cond() {
  auto graph = std::make_shared<Graph>();
  const std::vector<Output> arguments = backward_arguments(*graph);
  GraphEmitter e(*graph);
  const Value more =
      e.call("Greater", {GraphEmitter::value_of(arguments[0]), e.const_scalar(DType::kInt32, 0)});
  const std::vector<Output> result{e.output_of(more)};
  return add_function(library_, body_name_ + "_backward_cond", std::move(graph), arguments, result);
}

std::string LoopGradient::add_backward_body() {
  auto graph = std::make_shared<Graph>();
  const std::vector<Output> arguments = backward_arguments(*graph);
  GraphEmitter e(*graph);
  const auto argument = [&](size_t i) { return GraphEmitter::value_of(arguments[i]); };
  const size_t lists = 1, gradients = lists + kept_.size();
  const size_t invariants =
      gradients + wants_.size() +
      static_cast<size_t>(std::ranges::count_if(wants_, [&](size_t i) { return has_rows(i); }));
  std::vector<Value> results{e.sub(argument(0), e.const_scalar(DType::kInt32, 1))};
  std::vector<Value> inputs;
  for (size_t i = invariants; i < arguments.size(); ++i) inputs.push_back(argument(i));
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Value any = e.const_scalar(DType::kInt32, -1);
    const std::vector<Value> popped =
        e.emit("TensorListPopBack", std::vector{argument(lists + i), any},
               {{"element_dtype", dtype_of(kept_[i])}});
    results.push_back(popped[0]);
    graph->set_shape(e.output_of(popped[1]), info_of(kept_[i]).shape);
    inputs.push_back(popped[1]);
  }
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  size_t next = gradients;
  for (const size_t i : wants_) {
    if (is_carried(i)) inputs.push_back(argument(next));
    next += has_rows(i) ? 2 : 1;
    for (const Output& each : step_results(i)) {
      dtypes.push_back(dtype_of(each));
      shapes.push_back(info_of(each).shape);
    }
  }
  const std::vector<int> sizes{static_cast<int>(inputs.size())};
  const std::vector<Value> step =
      e.emit(stateful_ ? "StatefulPartitionedCall" : "PartitionedCall", inputs,
             {{"f", FunctionAttr{backward_step_, {}}}, {"Tout", dtypes}, {"output_shapes", shapes}},
             sizes);
  next = gradients;
  std::span<const Value> made(step);
  for (const size_t i : wants_) {
    const size_t count = step_results(i).size();
    if (has_rows(i)) {
      for (size_t k = 0; k < count; ++k)
        results.push_back(e.call("TensorListPushBack", {argument(next++), made[k]}));
    } else if (is_carried(i)) {
      results.push_back(made[0]);
      ++next;
    } else {  // of what stays the same the sum over the iterations
      const Value before = argument(next++);
      results.push_back(slices_[i].empty() ? e.add(before, made[0])
                                           : with_slices(e, i, before, made));
    }
    made = made.subspan(count);
  }
  for (size_t i = invariants; i < arguments.size(); ++i) results.push_back(argument(i));
  return add_function(library_, body_name_ + "_backward_body", graph, arguments,
                      outputs_of(e, results));
}

std::vector<Value> LoopGradient::call_backward_loop() {
  std::vector<Value> values;
  std::vector<PartialShape> shapes;
  const auto add = [&](Value value, const PartialShape& shape) {
    values.push_back(value);
    shapes.push_back(shape);
  };
  for (size_t i = count_; i < static_cast<size_t>(node_.num_outputs()); ++i)
    add({node_.id(), static_cast<int32_t>(i)}, Shape());
  for (const size_t i : wants_) {
    if (has_rows(i)) {
      for (const Value& list : no_rows(i)) add(list, Shape());
    } else {
      const bool variable = dtype_of(l_.inputs[i]) == DType::kResource;
      add(first_gradient(i),
          variable ? info_of(l_.gradients[i]).shape : node_.info(static_cast<int>(i)).shape);
    }
  }
  for (const size_t i : invariants_) {
    const Output& input = node_.input(static_cast<int>(i));
    add(GraphEmitter::value_of(input), info_of(input).shape);
  }
  for (const CapturedValue& value : l_.captured)
    add(GraphEmitter::value_of(value.around), info_of(value.around).shape);
  const std::string cond = add_backward_cond(), body = add_backward_body();
  const std::vector<int> sizes{static_cast<int>(values.size())};
  const std::vector<Value> results =
      e_.emit(stateful_ ? "While" : "StatelessWhile", values,
              {{"cond", FunctionAttr{cond, {}}},
               {"body", FunctionAttr{body, {}}},
               {"output_shapes", shapes},
               {"parallel_iterations", node_.op().get_int("parallel_iterations")}},
              sizes);
  return {results.begin() + 1 + static_cast<std::ptrdiff_t>(kept_.size()), results.end()};
}

// What there is before the last iteration.
Value LoopGradient::first_gradient(size_t i) {
  const Output& input = node_.input(static_cast<int>(i));
  if (dtype_of(input) == DType::kResource) return e_.zeros_like(value_read(i));
  if (output_gradients_[i].kind != Gradient::Kind::kNone) return e_.densified(output_gradients_[i]);
  return e_.zeros_like({node_.id(), static_cast<int32_t>(i)});
}

// The value, which stays the same.
Value LoopGradient::value_read(size_t i) {
  const Output& input = node_.input(static_cast<int>(i));
  if (dtype_of(input) != DType::kResource) return GraphEmitter::value_of(input);
  const Output& like = has_rows(i) ? l_.rows[i].values : l_.gradients[i];
  return e_.call("ReadVariableOp", {GraphEmitter::value_of(input)}, {{"dtype", dtype_of(like)}});
}

// Lists of rows and their numbers, in which there is an element that tells what rows are like.
std::vector<Value> LoopGradient::no_rows(size_t i) {
  const Value none = no_rows_of(value_read(i), e_);
  const Value indices = e_.const_ints(dtype_of(l_.rows[i].indices), {});
  std::vector<Value> lists;
  for (const Value& first : {none, indices}) {
    const Value any = e_.const_scalar(DType::kInt32, -1);
    const Value list = e_.call("EmptyTensorList", {any, any}, {{"element_dtype", e_.dtype(first)}});
    lists.push_back(e_.call("TensorListPushBack", {list, first}));
  }
  return lists;
}

// Rows that were gathered are slices as ever, and so is what a loop around collects. Other slices
// have a dense gradient outside of loops, and so here.
bool LoopGradient::stay_rows(size_t i) const {
  if (setting_.rows_of == nullptr) return !l_.rows[i].sliced;
  const Output source = setting_.rows_of->behind(node_.input(static_cast<int>(i)));
  if (source.node != nullptr && l_.rows[i].sliced) setting_.rows_of->sliced.push_back(source);
  return source.node != nullptr || !l_.rows[i].sliced;
}

void LoopGradient::give(std::span<const Value> gradients, std::span<Gradient> result) {
  size_t next = 0;
  for (const size_t i : wants_) {
    if (!has_rows(i)) {
      result[i] = Gradient::of(gradients[next++]);
      continue;
    }
    Gradient rows = joined_rows(i, gradients[next], gradients[next + 1]);
    next += 2;
    if (!stay_rows(i)) rows = Gradient::of(e_.densified(rows));
    const bool more = stays_[i] && output_gradients_[i].kind != Gradient::Kind::kNone;
    result[i] =
        more ? Gradient::of(e_.add(e_.densified(output_gradients_[i]), e_.densified(rows))) : rows;
  }
}

Gradient LoopGradient::joined_rows(size_t i, Value values, Value indices) {
  const auto join = [&](Value list, const Output& like) {
    PartialShape shape = info_of(like).shape;
    if (shape.rank_known()) shape = shape.with_dim(0, kUnknown);
    return e_.call("TensorListConcat", {list},
                   {{"element_dtype", dtype_of(like)}, {"element_shape", shape}});
  };
  const DType index = dtype_of(l_.rows[i].indices);
  return Gradient::slices(join(values, l_.rows[i].values), join(indices, l_.rows[i].indices),
                          e_.shape_of(value_read(i), index));
}

}  // namespace treenail
