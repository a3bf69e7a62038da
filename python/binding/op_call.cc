// SPDX-License-Identifier: Apache-2.0
#include "python/binding/op_call.h"

#include <unordered_map>

#include "framework/eager/prepared_call.h"
#include "framework/eager/tape.h"
#include "framework/op/op_registry.h"
#include "python/binding/graph_lock.h"
#include "python/binding/numpy.h"
#include "python/binding/op_inputs.h"
#include "python/binding/operation_type.h"
#include "python/binding/precision.h"
#include "python/binding/quick_call.h"
#include "python/binding/tape_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

Ref call_in_graph(const OpCall& call, const OpInputs& inputs, Node** node_out,
                  GraphObject** graph_out) {
  GraphObject* graph = call.graph ? call.graph : inputs.graph() ? inputs.graph() : default_graph();
  Ref held = Ref::borrow(as_object(graph));
  std::vector<Output> values = inputs.outputs(graph);
  cast_inputs(graph, call, inputs.arg_sizes(), values);
  NewNode node;
  node.def = call.def;
  node.inputs = values;
  node.arg_sizes = inputs.arg_sizes();
  node.attrs = call.attrs;
  node.name = call.name;
  node.control_inputs = call.control_inputs;
  *node_out = &add_node(graph, node);
  *graph_out = graph;
  return held;
}

bool is_state(DType dtype) { return dtype == DType::kResource || dtype == DType::kVariant; }

// Whether a concrete tensor that a function's body uses is passed to it: what is large, and what
// gradients may be asked for; else it is a constant there.
bool is_argument(const Tensor& tensor) {
  constexpr size_t kMostCopied = size_t{1} << 20;
  return !is_plain(tensor.dtype()) || carries_gradient(tensor.dtype()) ||
         tensor.bytes() > kMostCopied;
}

TensorIdentity tensor_identity(const Tensor& tensor) {
  return {tensor.raw(), tensor.dtype(), to_text(tensor.shape())};
}

// On the device that the context asks for. `op`: what was run.
std::vector<Tensor> run_now(const ImmediateCall& given, OpInstance& op) {
  return at_its_place(given, current_device(), [&](const ImmediateCall& call) {
    const auto prepared = naming_op(call.def, [&] { return prepare_call(call); });
    op = prepared->op();
    CallRun run(*prepared, call.inputs, nullptr);
    naming_op(call.def, [&] { run_call(run, *prepared); });
    std::vector<Tensor> outputs;
    outputs.reserve(run.num_outputs());
    for (size_t i = 0; i < run.num_outputs(); ++i) outputs.push_back(std::move(run.output(i)));
    return outputs;
  });
}

std::vector<ImmediateTensor> execute_now(const OpCall& call, const OpInputs& inputs) {
  std::vector<ImmediateTensor> made;
  std::vector<const ImmediateTensor*> values = inputs.immediate(made);
  HeldCasts casts;
  cast_inputs(call, inputs.arg_sizes(), values, casts);
  std::vector<const Tensor*> tensors;
  tensors.reserve(values.size());
  for (const ImmediateTensor* value : values) tensors.push_back(&value->tensor);
  OpInstance op;
  std::vector<ImmediateTensor> outputs;
  for (Tensor& output : run_now({*call.def, tensors, call.attrs, inputs.arg_sizes()}, op))
    outputs.push_back({std::move(output)});
  if (tapes_record()) record_op(op, values, outputs, rule_in_python(*call.def));
  return outputs;
}

PyObject* result_type(const OpDef& def) {
  static auto* types = new std::unordered_map<const OpDef*, PyObject*>();
  PyObject*& type = (*types)[&def];
  if (type == nullptr) {
    Ref fields = checked(PyTuple_New(static_cast<Py_ssize_t>(def.outputs.size())));
    for (size_t i = 0; i < def.outputs.size(); ++i) {
      PyTuple_SET_ITEM(fields.get(), static_cast<Py_ssize_t>(i),
                       text_object(def.outputs[i].name).release());
    }
    type = checked(parking([&] {
             return PyObject_CallFunction(state().make_result_type, "sO", def.name.c_str(),
                                          fields.get());
           })).release();
  }
  return type;
}

// Groups flat outputs as the op declares them. `size_of(arg)`: how many belong to declared output
// arg.
template <class SizeOf, class Element>
Ref grouped(const OpDef& def, SizeOf&& size_of, Element&& element) {
  int next = 0;
  const auto one = [&](size_t arg) -> Ref {
    if (!def.outputs[arg].is_list()) return element(next++);
    const int size = size_of(static_cast<int>(arg));
    Ref list = checked(PyList_New(size));
    for (int i = 0; i < size; ++i) PyList_SET_ITEM(list.get(), i, element(next++).release());
    return list;
  };
  if (def.outputs.size() == 1) return one(0);
  Ref values = checked(PyTuple_New(static_cast<Py_ssize_t>(def.outputs.size())));
  for (size_t arg = 0; arg < def.outputs.size(); ++arg) {
    PyTuple_SET_ITEM(values.get(), static_cast<Py_ssize_t>(arg), one(arg).release());
  }
  return checked(parking([&] { return PyObject_Call(result_type(def), values.get(), nullptr); }));
}

Ref symbolic_result(GraphObject* graph, Node* node) {
  const OpDef& def = node->op().def();
  if (def.outputs.empty()) return operation_view(graph, node);
  return grouped(
      def,
      [&](int arg) {
        const auto [begin, end] = node->op().output_range(arg);
        return end - begin;
      },
      [&](int i) {
        return tensor_view(graph, {node, i});
      });
}

}  // namespace

Ref concrete_result(const OpDef& def, std::span<ImmediateTensor> outputs) {
  if (def.outputs.empty()) return Ref::borrow(Py_None);
  // At most one list output has a size that only the count tells.
  const int fixed = static_cast<int>(def.outputs.size()) - 1;
  const int list_size = static_cast<int>(outputs.size()) - fixed;
  return grouped(
      def, [&](int) { return list_size; },
      [&](int i) { return new_concrete_tensor(std::move(outputs[static_cast<size_t>(i)])); });
}

Ref call_op(const OpCall& call) {
  if (call.mode == CallMode::kImmediate) {
    if (Ref quick = quick_call(*call.def, call.inputs, call.attrs)) return quick;
    std::vector<ImmediateTensor> outputs = execute_now(call, OpInputs(call));
    return concrete_result(*call.def, outputs);
  }
  const OpInputs inputs(call);
  Node* node = nullptr;
  GraphObject* graph = nullptr;
  const Ref held = call_in_graph(call, inputs, &node, &graph);
  return symbolic_result(graph, node);
}

Ref create_op(const OpCall& call) {
  const OpInputs inputs(call);
  Node* node = nullptr;
  GraphObject* graph = nullptr;
  const Ref held = call_in_graph(call, inputs, &node, &graph);
  return operation_view(graph, node);
}

std::vector<Tensor> execute_op(const OpCall& call) {
  std::vector<Tensor> outputs;
  for (ImmediateTensor& output : execute_now(call, OpInputs(call)))
    outputs.push_back(std::move(output.tensor));
  return outputs;
}

Ref concrete_in_graph(GraphObject* graph, PyObject* tensor, std::string_view name) {
  const Tensor& value = *concrete_value(tensor);
  if (value.device() != nullptr && !(graph->state->captures && is_argument(value)))
    return constant_tensor(graph, on_host(value), name, true);
  auto& constants = graph->state->constants;
  const auto found = constants.find(tensor_identity(value));
  if (found != constants.end()) return tensor_view(graph, {found->second, 0});
  if (!graph->state->captures && is_state(value.dtype())) {
    throw_value_error(repr_of(tensor),
                      " is state of immediate execution, which a graph cannot use: "
                      "make it with the graph, or call a tn.function");
  }
  Ref made;
  if (graph->state->captures && is_argument(value)) {
    Ref text = text_object(name);
    PyObject* arguments[] = {as_object(graph), tensor, text.get()};
    made = checked(parking(
        [&] { return PyObject_Vectorcall(state().capture_concrete, arguments, 3, nullptr); }));
  } else {
    made = constant_tensor(graph, value, name, true);
  }
  // The node, or the body, shares the bytes: nothing else has this identity while it is there.
  constants.emplace(tensor_identity(value), output_of(made.get()).node);
  return made;
}

CallMode current_mode() {
  return default_graph()->state->immediate ? CallMode::kImmediate : CallMode::kGraph;
}

std::vector<Tensor> run_op_now(const OpDef& def, std::span<const Tensor> inputs,
                               const NamedAttrs& attrs, std::span<const int> arg_sizes,
                               OpInstance& op) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return run_now({def, pointers, attrs, arg_sizes}, op);
}

Ref call_binary(const OpDef& def, PyObject* a, PyObject* b) {
  if (current_mode() == CallMode::kImmediate) {
    static const auto* const none = new NamedAttrs();
    PyObject* const inputs[] = {a, b};
    if (Ref quick = quick_call(def, inputs, *none)) return quick;
  }
  OpCall call;
  call.def = &def;
  call.inputs = {a, b};
  return call_op(call);
}

Ref call_unary(const OpDef& def, PyObject* a) {
  OpCall call;
  call.def = &def;
  call.inputs = {a};
  return call_op(call);
}

Ref constant_tensor(GraphObject* graph, Tensor value, std::string_view name, bool absolute) {
  static const OpDef& def = OpRegistry::instance().get("Const");
  const NamedAttr attrs[] = {{"dtype", value.dtype()}, {"value", std::move(value)}};
  NewNode node;
  node.def = &def;
  node.attrs = attrs;
  node.name = name;
  node.absolute = absolute;
  Node& added = add_node(graph, node);
  return tensor_view(graph, {&added, 0});
}

}  // namespace treenail::python
