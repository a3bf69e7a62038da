// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/function_gradients.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/function_calls.h"
#include "framework/graph/loop_gradients.h"
#include "framework/graph/row_gradients.h"

namespace treenail {
namespace {

// The op's function attributes with these names instead, and what its outputs are.
NamedAttrs calling(const OpInstance& op, const std::vector<std::string>& names,
                   std::vector<DType> dtypes, std::vector<PartialShape> shapes) {
  NamedAttrs attrs;
  size_t next = 0;
  for (size_t i = 0; i < op.attrs().size(); ++i) {
    const std::string& name = op.def().attrs[i].name;
    if (op.attrs()[i].kind() == AttrKind::kFunction) {
      attrs.emplace_back(name, FunctionAttr{names[next++], {}});
    } else if (op.attrs()[i].kind() == AttrKind::kFunctionList) {
      std::vector<FunctionAttr> list;
      for (; next < names.size(); ++next) list.push_back({names[next], {}});
      attrs.emplace_back(name, std::move(list));
    }
  }
  attrs.emplace_back("Tout", std::move(dtypes));
  attrs.emplace_back("output_shapes", std::move(shapes));
  return attrs;
}

// In a branch that does not compute it, what another keeps.
Output stand_in(Graph& body, const Output& value) {
  const DType dtype = value.node->op().output_type(value.index);
  if (dtype == DType::kResource) {
    throw unimplemented("the gradient reads the handle ", to_text(value),
                        " of one branch, which other branches cannot stand in for");
  }
  if (dtype == DType::kVariant) {
    GraphEmitter e(body);
    e.set_place("not_computed/", nullptr);
    const Value any = e.const_scalar(DType::kInt32, -1);
    return e.output_of(e.call("EmptyTensorList", {any, any}, {{"element_dtype", DType::kFloat32}}));
  }
  Tensor none(dtype, Shape{0});
  const NamedAttrs attrs = {{"dtype", dtype}, {"value", std::move(none)}};
  return {&body.add({.op = "Const", .name = "not_computed", .inputs = {}, .attrs = attrs}), 0};
}

// In a branch that does not read it, what another does: whatever that is.
Output unread(Graph& body, const Output& value) {
  return add_placeholder(body, "unread", value.node->op().output_type(value.index), PartialShape());
}

// Other threads may ask for gradients through the same node.
constexpr int kAttempts = 10;

BodySetting recomputing(BodySetting setting, const Node& node) {
  const OpInstance& op = node.op();
  setting.recompute = op.def().attr_index("recompute") >= 0 && op.get_bool("recompute");
  return setting;
}

// The gradient of a call or a choice between calls.
class ChoiceGradient {
 public:
  ChoiceGradient(Node& node, const BodySetting& setting, GraphEmitter& emitter,
                 std::span<const Gradient> output_gradients, std::span<const bool> needed)
      : node_(node),
        setting_(recomputing(setting, node)),
        library_(setting.library),
        e_(emitter),
        op_(node.op()),
        names_(functions_called(op_)),
        first_(op_.input_range(static_cast<int>(op_.def().inputs.size()) - 1).first) {
    for (size_t i = 0; i < output_gradients.size(); ++i) {
      with_gradient_.push_back(output_gradients[i].kind != Gradient::Kind::kNone);
      if (with_gradient_[i]) incoming_.push_back(e_.densified(output_gradients[i]));
    }
    for (int i = first_; i < op_.num_inputs(); ++i) {
      const DType dtype = op_.input_type(i);
      wanted_.push_back(needed[static_cast<size_t>(i)] &&
                        (carries_gradient(dtype) || dtype == DType::kResource));
    }
  }

  // False where the node has grown meanwhile, while a rule of the program's was called.
  bool run(std::span<Gradient> result);

 private:
  void linearise_all();
  void find_inputs_with_gradient();
  Output source_of(const Output& argument) const {
    return setting_.rows_of == nullptr ? Output() : setting_.rows_of->behind(argument);
  }
  static Value value_of(const Output& argument, GraphEmitter& e);
  static void complete_rows(Linearised& branch, size_t i, GraphEmitter& e);
  static Output dense_rows(Linearised& branch, size_t i, GraphEmitter& e);
  std::vector<Output> forward_outputs(size_t branch);
  std::vector<Output> backward_inputs(size_t branch);
  void add_functions();
  void grow_node();
  std::vector<Value> call_backward();

  Node& node_;
  const BodySetting setting_;
  Graph& library_;
  GraphEmitter& e_;
  const OpInstance op_;  // as it was
  const std::vector<std::string> names_;
  const int first_;  // input that is the functions' first argument
  std::vector<Value> incoming_;
  std::vector<bool> wanted_;         // by argument
  std::vector<bool> with_gradient_;  // by output
  std::vector<Linearised> branches_;
  std::vector<size_t> inputs_;  // arguments that have a gradient
  std::vector<bool> as_rows_;   // by argument: whether that is rows in every branch
  std::vector<bool> reads_;     // arguments that a backward part reads
  std::vector<std::string> forward_, backward_;
  bool stateful_ = false;
};

bool ChoiceGradient::run(std::span<Gradient> result) {
  linearise_all();
  if (node_.num_outputs() != op_.num_outputs()) return false;
  find_inputs_with_gradient();
  if (inputs_.empty()) return true;
  add_functions();
  grow_node();
  const std::vector<Value> gradients = call_backward();
  size_t next = 0;
  for (const size_t i : inputs_) {
    Gradient& given = result[static_cast<size_t>(first_) + i];
    given = Gradient::of(gradients[next++]);
    if (!as_rows_[i]) continue;
    const Output& input = node_.input(first_ + static_cast<int>(i));
    const Value argument = value_of(input, e_);
    for (const Linearised& branch : branches_)
      if (branch.rows[i].sliced) setting_.rows_of->sliced.push_back(source_of(input));
    given = Gradient::slices(given.dense, gradients[next++], e_.shape_of(argument));
  }
  return true;
}

void ChoiceGradient::linearise_all() {
  BodyRequest request{
      with_gradient_, wanted_, {node_.inputs().begin() + first_, node_.inputs().end()}, {}};
  for (const Output& argument : request.around)
    request.rows.push_back(source_of(argument).node != nullptr);
  for (const std::string& name : names_)
    branches_.push_back(linearise(function_named(library_, name), request, setting_));
}

// What an argument is, or a variable has.
Value ChoiceGradient::value_of(const Output& argument, GraphEmitter& e) {
  const Value value = GraphEmitter::value_of(argument);
  if (e.dtype(value) != DType::kResource) return value;
  const auto& handle = argument.node->info(argument.index).handle;
  if (handle == nullptr) throw unimplemented("the gradient of an unknown variable");
  return e.call("ReadVariableOp", {value}, {{"dtype", handle->dtype}});
}

// Rows as other branches give them, of which there may be none.
void ChoiceGradient::complete_rows(Linearised& branch, size_t i, GraphEmitter& e) {
  Rows& rows = branch.rows[i];
  if (rows.values.node == nullptr) {
    rows.values = e.output_of(no_rows_of(value_of(branch.inputs[i], e), e));
    rows.indices = e.output_of(e.const_ints(DType::kInt64, {}));
  }
  rows.indices = e.output_of(e.cast(GraphEmitter::value_of(rows.indices), DType::kInt64));
}

Output ChoiceGradient::dense_rows(Linearised& branch, size_t i, GraphEmitter& e) {
  const Rows rows = std::exchange(branch.rows[i], {});
  return e.output_of(e.densified(Gradient::slices(GraphEmitter::value_of(rows.values),
                                                  GraphEmitter::value_of(rows.indices),
                                                  e.shape_of(value_of(branch.inputs[i], e)))));
}

// A branch through which an argument has no gradient gives zeros where another has one.
void ChoiceGradient::find_inputs_with_gradient() {
  for (size_t i = 0; i < wanted_.size(); ++i) {
    const auto any = [&](auto has) { return std::ranges::any_of(branches_, has); };
    const bool dense = any([&](const Linearised& b) { return b.gradients[i].node != nullptr; });
    const bool rows = any([&](const Linearised& b) { return b.rows[i].values.node != nullptr; });
    if (dense || rows) inputs_.push_back(i);
    as_rows_.push_back(rows && !dense);
  }
  reads_.resize(wanted_.size());
  for (Linearised& branch : branches_) {
    GraphEmitter e(*branch.body);
    e.set_place("gradients/", nullptr);
    for (const size_t i : inputs_) {
      if (as_rows_[i]) {
        complete_rows(branch, i, e);
      } else if (branch.rows[i].values.node != nullptr) {
        branch.gradients[i] = dense_rows(branch, i, e);
      } else if (branch.gradients[i].node == nullptr) {
        branch.gradients[i] = e.output_of(e.zeros_like(value_of(branch.inputs[i], e)));
      }
    }
    branch.find_reads();
    for (size_t i = 0; i < reads_.size(); ++i) reads_[i] = reads_[i] || branch.reads_input[i];
  }
}

std::vector<Output> ChoiceGradient::forward_outputs(size_t branch) {
  Linearised& mine = branches_[branch];
  std::vector<Output> outputs = mine.outputs;
  for (size_t b = 0; b < branches_.size(); ++b) {
    for (const Output& value : branches_[b].kept)
      outputs.push_back(b == branch ? value : stand_in(*mine.body, value));
  }
  return outputs;
}

std::vector<Output> ChoiceGradient::backward_inputs(size_t branch) {
  Linearised& mine = branches_[branch];
  std::vector<Output> inputs;
  for (size_t i = 0; i < reads_.size(); ++i)
    if (reads_[i]) inputs.push_back(mine.inputs[i]);
  for (size_t b = 0; b < branches_.size(); ++b) {
    for (const Output& value : branches_[b].kept)
      inputs.push_back(b == branch ? value : unread(*mine.body, value));
    for (const CapturedValue& value : branches_[b].captured)
      inputs.push_back(b == branch ? value.inside
                                   : add_placeholder_like(*mine.body, "unread", value.inside));
  }
  inputs.insert(inputs.end(), mine.incoming.begin(), mine.incoming.end());
  return inputs;
}

void ChoiceGradient::add_functions() {
  std::vector<std::vector<Output>> outputs, inputs;
  for (size_t b = 0; b < branches_.size(); ++b) {
    outputs.push_back(forward_outputs(b));
    inputs.push_back(backward_inputs(b));
  }
  for (size_t b = 0; b < branches_.size(); ++b) {
    const Linearised& branch = branches_[b];
    std::vector<Output> gradients;
    for (const size_t i : inputs_) {
      gradients.push_back(as_rows_[i] ? branch.rows[i].values : branch.gradients[i]);
      if (as_rows_[i]) gradients.push_back(branch.rows[i].indices);
    }
    stateful_ = stateful_ || is_stateful(*branch.body);
    forward_.push_back(add_function(library_, names_[b] + "_forward", branch.body, branch.inputs,
                                    outputs[b], branch.rules));
    backward_.push_back(add_function(library_, names_[b] + "_backward", branch.body, inputs[b],
                                     gradients, branch.rules));
  }
}

void ChoiceGradient::grow_node() {
  std::vector<DType> dtypes(op_.output_types().begin(), op_.output_types().end());
  std::vector<PartialShape> shapes;
  for (int i = 0; i < op_.num_outputs(); ++i) shapes.push_back(node_.info(i).shape);
  for (const Linearised& branch : branches_) {
    for (const Output& value : branch.kept) {
      const ValueInfo& info = value.node->info(value.index);
      dtypes.push_back(info.dtype);
      // Another branch gives none.
      shapes.push_back(branches_.size() == 1 ? info.shape : PartialShape());
    }
  }
  node_.graph().grow(node_, {}, calling(op_, forward_, std::move(dtypes), std::move(shapes)));
}

std::vector<Value> ChoiceGradient::call_backward() {
  std::vector<Value> inputs;
  for (int i = 0; i < first_; ++i) inputs.push_back(GraphEmitter::value_of(node_.input(i)));
  bool state = stateful_;
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (!reads_[i]) continue;
    inputs.push_back(GraphEmitter::value_of(node_.input(first_ + static_cast<int>(i))));
    state = state || e_.dtype(inputs.back()) == DType::kResource;
  }
  int grown = op_.num_outputs();
  for (const Linearised& branch : branches_) {
    for (size_t i = 0; i < branch.kept.size(); ++i) inputs.push_back({node_.id(), grown++});
    for (const CapturedValue& value : branch.captured) {
      inputs.push_back(GraphEmitter::value_of(value.around));
      state = state || e_.dtype(inputs.back()) == DType::kResource;
    }
  }
  inputs.insert(inputs.end(), incoming_.begin(), incoming_.end());
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const size_t i : inputs_) {
    const Output& gradient = as_rows_[i] ? branches_[0].rows[i].values : branches_[0].gradients[i];
    dtypes.push_back(gradient.node->op().output_type(gradient.index));
    const int input = first_ + static_cast<int>(i);
    const Output& argument = node_.input(input);
    const auto& info = argument.node->info(argument.index);
    const bool variable = info.dtype == DType::kResource && info.handle != nullptr;
    shapes.push_back(variable ? info.handle->shape : info.shape);
    if (!as_rows_[i]) continue;
    if (shapes.back().rank_known()) shapes.back() = shapes.back().with_dim(0, kUnknown);
    dtypes.push_back(DType::kInt64);
    shapes.push_back(PartialShape{kUnknown});
  }
  std::string op = op_.name();
  for (const std::string_view prefix : {"Stateless", "Stateful"})
    if (op.starts_with(prefix)) op = op.substr(prefix.size());
  if (op == "PartitionedCall") {
    if (state) op = "Stateful" + op;
  } else if (!state) {
    op = "Stateless" + op;
  }
  std::vector<int> sizes(static_cast<size_t>(first_), 1);
  sizes.push_back(static_cast<int>(inputs.size()) - first_);
  return e_.emit(op, inputs, calling(op_, backward_, std::move(dtypes), std::move(shapes)), sizes);
}

}  // namespace

void function_gradients(Node& node, const BodySetting& setting, GraphEmitter& emitter,
                        std::span<const Gradient> output_gradients, std::span<const bool> needed,
                        std::span<Gradient> result) {
  const bool loop = node.type() == "While" || node.type() == "StatelessWhile";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // What has been added to the node since has no part in this.
    std::vector<Gradient> given(output_gradients.begin(), output_gradients.end());
    given.resize(static_cast<size_t>(node.num_outputs()));
    std::vector<Gradient> found(node.inputs().size());
    const auto asked = std::make_unique<bool[]>(found.size());
    std::ranges::copy(needed, asked.get());
    const std::span<const bool> wanted(asked.get(), found.size());
    if (loop ? loop_gradients(node, setting, emitter, given, wanted, found)
             : ChoiceGradient(node, setting, emitter, given, wanted).run(found)) {
      std::ranges::copy_n(found.begin(), std::ssize(result), result.begin());
      return;
    }
  }
  throw failed_precondition("the gradient of a function in it asks for the gradient of all of it");
}

}  // namespace treenail
