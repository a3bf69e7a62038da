// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/loop_gradients.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/graph/import.h"
#include "framework/graph/row_gradients.h"

namespace treenail {
namespace {

DType dtype_of(const Output& value) { return value.node->op().output_type(value.index); }
const ValueInfo& info_of(const Output& value) { return value.node->info(value.index); }

std::vector<Output> outputs_of(const GraphEmitter& e, std::span<const Value> values) {
  std::vector<Output> outputs;
  for (const Value& value : values) outputs.push_back(e.output_of(value));
  return outputs;
}

// The inputs of a body that each of its outputs may have a gradient for: reached by values that may
// carry one.
class Reach {
 public:
  explicit Reach(const Function& f) : body_(*f.body) {
    for (const std::string& name : f.input_nodes) inputs_.push_back(body_.find_output(name));
    for (const std::string& name : f.output_values) outputs_.push_back(body_.find_output(name));
  }

  // Adds to `found`, by input, what output i reaches.
  void add(size_t i, std::vector<bool>& found) {
    std::vector<Output> stack{outputs_[i]};
    std::unordered_set<const Node*> seen;
    while (!stack.empty()) {
      const Output value = stack.back();
      stack.pop_back();
      const auto input = std::ranges::find(inputs_, value);
      if (input != inputs_.end()) {
        found[static_cast<size_t>(input - inputs_.begin())] = true;
      } else if (seen.insert(value.node).second) {
        for (const Output& each : value.node->inputs()) {
          const DType dtype = dtype_of(each);
          if (carries_gradient(dtype) || dtype == DType::kResource) stack.push_back(each);
        }
      }
    }
  }
  bool passes_on(size_t i) const { return outputs_[i] == inputs_[i]; }

 private:
  const Graph& body_;
  std::vector<Output> inputs_, outputs_;
};

class LoopGradient {
 public:
  LoopGradient(Node& node, const BodySetting& setting, GraphEmitter& emitter,
               std::span<const Gradient> output_gradients, std::span<const bool> needed)
      : node_(node),
        setting_(setting),
        library_(setting.library),
        e_(emitter),
        count_(static_cast<size_t>(node.num_outputs())),
        body_name_(node.op().get<FunctionAttr>("body").name),
        cond_name_(node.op().get<FunctionAttr>("cond").name),
        output_gradients_(output_gradients.begin(), output_gradients.end()),
        needed_(needed) {}

  bool run(std::span<Gradient> result) {
    find_differentiated();
    linearise_body();
    if (static_cast<size_t>(node_.num_outputs()) != count_) return false;
    for (size_t i = 0; i < count_; ++i)  // where nothing is added to it
      if (differentiated_[i] && stays_[i]) result[i] = output_gradients_[i];
    if (wants_.empty()) return true;
    const std::string body = add_forward_body();  // before the graph that they share is finished
    add_backward_step();
    grow_node(body, add_forward_cond());
    give(call_backward_loop(), result);
    return true;
  }

 private:
  void find_differentiated();
  void linearise_body();
  void sort_reads();
  std::string add_forward_body();
  void add_backward_step();
  std::string add_forward_cond();
  void grow_node(const std::string& body, const std::string& cond);
  std::string add_backward_body();
  std::string add_backward_cond();
  std::vector<Output> backward_arguments(Graph& graph);
  std::vector<Value> call_backward_loop();
  Value first_gradient(size_t i);
  Value value_read(size_t i);
  std::vector<Value> no_rows(size_t i);
  void give(std::span<const Value> gradients, std::span<Gradient> result);
  Gradient joined_rows(size_t i, Value values, Value indices);
  bool stay_rows(size_t i) const;

  bool has_rows(size_t i) const { return l_.rows[i].values.node != nullptr; }
  // Whether the gradient comes to a step, which gives another, rather than what is to be added.
  bool is_carried(size_t i) const { return differentiated_[i] && !stays_[i]; }

  Node& node_;
  const BodySetting& setting_;
  Graph& library_;
  GraphEmitter& e_;
  const size_t count_;  // values of the loop before it grew
  const std::string body_name_, cond_name_;
  const std::vector<Gradient> output_gradients_;
  const std::span<const bool> needed_;  // by input
  std::vector<bool> differentiated_;    // values that a gradient goes through
  std::vector<bool> stays_;             // values that are the same in every iteration, but lists
  Linearised l_;
  std::vector<size_t> wants_;       // inputs that have a gradient: values, and handles of variables
  std::vector<size_t> invariants_;  // inputs that the backward step reads, the same each time
  std::vector<Output> kept_;        // what it reads of an iteration
  std::string backward_step_;
  bool stateful_ = false;
};

// A gradient goes through a value if one comes to its output, or from a value that it is made of.
void LoopGradient::find_differentiated() {
  Reach reach(function_named(library_, body_name_));
  differentiated_.resize(count_);
  for (size_t i = 0; i < count_; ++i) {
    const bool list = node_.op().input_type(static_cast<int>(i)) == DType::kVariant;
    stays_.push_back(reach.passes_on(i) && !list);
  }
  std::vector<bool> reached(count_);
  std::vector<size_t> fresh;
  for (size_t i = 0; i < count_; ++i) {
    if (output_gradients_[i].kind != Gradient::Kind::kNone) fresh.push_back(i);
  }
  while (!fresh.empty()) {
    const size_t i = fresh.back();
    fresh.pop_back();
    if (differentiated_[i]) continue;
    differentiated_[i] = true;
    reach.add(i, reached);
    for (size_t k = 0; k < count_; ++k) {
      // What stays the same leads nowhere else.
      const bool asked = needed_[k] || !reach.passes_on(k);
      if (reached[k] && asked && !differentiated_[k] &&
          carries_gradient(node_.op().input_type(static_cast<int>(k))))
        fresh.push_back(k);
    }
  }
  for (size_t i = 0; i < count_; ++i) {
    if (differentiated_[i] || (reached[i] && needed_[i] &&
                               node_.op().input_type(static_cast<int>(i)) == DType::kResource))
      wants_.push_back(i);
  }
}

void LoopGradient::linearise_body() {
  BodyRequest request;
  request.has_gradient.resize(count_);
  request.wanted.resize(count_);
  request.around.resize(count_);
  request.rows = stays_;
  for (const size_t i : wants_) request.wanted[i] = true;
  for (size_t i = 0; i < count_; ++i) request.has_gradient[i] = is_carried(i);
  const Function& body = function_named(library_, body_name_);
  for (size_t i = 0; i < count_; ++i) {
    if (body.body->find_output(body.output_values[i]) ==
        body.body->find_output(body.input_nodes[i]))
      request.around[i] = node_.input(static_cast<int>(i));
  }
  l_ = linearise(body, request, setting_);
  GraphEmitter e(*l_.body);
  e.set_place("gradients/", nullptr);
  std::erase_if(wants_, [&](size_t i) {  // what no gradient comes to after all
    return l_.gradients[i].node == nullptr && !has_rows(i) && !is_carried(i);
  });
  for (const size_t i : wants_) {
    if (l_.gradients[i].node == nullptr && !has_rows(i))
      l_.gradients[i] = e.output_of(e.zeros_like(GraphEmitter::value_of(l_.inputs[i])));
  }
  l_.find_reads();
  sort_reads();
  stateful_ = is_stateful(*l_.body);
  for (const size_t i : invariants_)
    stateful_ = stateful_ || dtype_of(l_.inputs[i]) == DType::kResource;
  for (const CapturedValue& value : l_.captured)
    stateful_ = stateful_ || dtype_of(value.inside) == DType::kResource;
}

void LoopGradient::sort_reads() {
  kept_ = l_.kept;
  for (size_t i = 0; i < count_; ++i) {
    if (!l_.reads_input[i]) continue;
    if (l_.outputs[i] == l_.inputs[i]) {
      invariants_.push_back(i);
    } else {
      kept_.push_back(l_.inputs[i]);
    }
  }
  for (const Output& value : kept_) {
    if (dtype_of(value) == DType::kResource)
      throw unimplemented("the gradient reads the handle ", to_text(value), " of each iteration");
  }
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
    outputs.push_back(has_rows(i) ? l_.rows[i].values : l_.gradients[i]);
    if (has_rows(i)) outputs.push_back(l_.rows[i].indices);
  }
  backward_step_ =
      add_function(library_, body_name_ + "_backward", l_.body, inputs, outputs, l_.rules);
}

// The body, which also counts and pushes what is kept.
std::string LoopGradient::add_forward_body() {
  Graph& body = *l_.body;
  GraphEmitter e(body);
  e.set_place("kept/", nullptr);
  std::vector<Output> inputs = l_.inputs, outputs = l_.outputs;
  inputs.push_back(add_placeholder(body, "kept/count", DType::kInt32, Shape()));
  outputs.push_back(
      e.output_of(e.add(GraphEmitter::value_of(inputs.back()), e.const_scalar(DType::kInt32, 1))));
  for (const Output& value : kept_) {
    inputs.push_back(add_placeholder(body, "kept/list", DType::kVariant, Shape()));
    outputs.push_back(
        e.output_of(e.call("TensorListPushBack", {GraphEmitter::value_of(inputs.back()),
                                                  GraphEmitter::value_of(value)})));
  }
  return add_function(library_, body_name_ + "_forward", l_.body, inputs, outputs, l_.rules);
}

// The condition, which is given as many values.
std::string LoopGradient::add_forward_cond() {
  const Function& old = function_named(library_, cond_name_);
  auto graph = std::make_shared<Graph>();
  import_graph(*graph, *old.body);
  std::vector<Output> inputs, outputs;
  for (const std::string& name : old.input_nodes) inputs.push_back(graph->find_output(name));
  for (const std::string& name : old.output_values) outputs.push_back(graph->find_output(name));
  inputs.push_back(add_placeholder(*graph, "kept/count", DType::kInt32, Shape()));
  for (size_t i = 0; i < kept_.size(); ++i)
    inputs.push_back(add_placeholder(*graph, "kept/list", DType::kVariant, Shape()));
  return add_function(library_, cond_name_ + "_forward", std::move(graph), inputs, outputs);
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
  std::vector<bool> carried, rows;  // by result of a step
  for (const size_t i : wants_) {
    if (is_carried(i)) inputs.push_back(argument(gradients + carried.size()));
    for (const Output& each : {l_.gradients[i], l_.rows[i].values, l_.rows[i].indices}) {
      if (each.node == nullptr) continue;
      dtypes.push_back(dtype_of(each));
      shapes.push_back(info_of(each).shape);
      carried.push_back(is_carried(i));
      rows.push_back(has_rows(i));
    }
  }
  const std::vector<int> sizes{static_cast<int>(inputs.size())};
  const std::vector<Value> step =
      e.emit(stateful_ ? "StatefulPartitionedCall" : "PartitionedCall", inputs,
             {{"f", FunctionAttr{backward_step_, {}}}, {"Tout", dtypes}, {"output_shapes", shapes}},
             sizes);
  for (size_t i = 0; i < step.size(); ++i) {
    // The gradient of what stays the same is the sum over the iterations.
    const Value before = argument(gradients + i);
    results.push_back(carried[i] ? step[i]
                      : rows[i]  ? e.call("TensorListPushBack", {before, step[i]})
                                 : e.add(before, step[i]));
  }
  for (size_t i = invariants; i < arguments.size(); ++i) results.push_back(argument(i));
  return add_function(library_, body_name_ + "_backward_body", graph, arguments,
                      outputs_of(e, results));
}

void LoopGradient::grow_node(const std::string& body, const std::string& cond) {
  std::vector<Output> more{e_.output_of(e_.const_scalar(DType::kInt32, 0))};
  std::vector<DType> dtypes(node_.op().input_types().begin(), node_.op().input_types().end());
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < count_; ++i) shapes.push_back(node_.info(static_cast<int>(i)).shape);
  dtypes.push_back(DType::kInt32);
  shapes.emplace_back(Shape());
  for (const Output& value : kept_) {
    const Value any = e_.const_scalar(DType::kInt32, -1);
    const Value none = e_.call("EmptyTensorList", {any, any}, {{"element_dtype", dtype_of(value)}});
    more.push_back(e_.output_of(none));
    dtypes.push_back(DType::kVariant);
    shapes.emplace_back(Shape());
  }
  node_.graph().grow(node_, more,
                     {{"T", dtypes},
                      {"output_shapes", shapes},
                      {"cond", FunctionAttr{cond, {}}},
                      {"body", FunctionAttr{body, {}}}});
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

}  // namespace

bool loop_gradients(Node& node, const BodySetting& setting, GraphEmitter& emitter,
                    std::span<const Gradient> output_gradients, std::span<const bool> needed,
                    std::span<Gradient> result) {
  return LoopGradient(node, setting, emitter, output_gradients, needed).run(result);
}

}  // namespace treenail
