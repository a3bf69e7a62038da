// SPDX-License-Identifier: Apache-2.0
#include "python/binding/op_call.h"

#include <unordered_map>

#include "framework/base/interrupt.h"
#include "framework/eager/execute.h"
#include "framework/op/op_registry.h"
#include "python/binding/graph_lock.h"
#include "python/binding/op_inputs.h"
#include "python/binding/operation_type.h"
#include "python/binding/signals.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

// Immediate execution of less than this keeps the GIL.
constexpr size_t kCheapBytes = 16384;

Ref call_in_graph(const OpCall& call, const OpInputs& inputs, Node** node_out,
                  GraphObject** graph_out) {
  GraphObject* graph = call.graph ? call.graph : inputs.graph() ? inputs.graph() : default_graph();
  Ref held = Ref::borrow(as_object(graph));
  const std::vector<Output> values = inputs.outputs(graph);
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

std::vector<Tensor> execute_now(const OpCall& call, const OpInputs& inputs) {
  const std::vector<Tensor> values = inputs.tensors();
  size_t bytes = 0;
  bool cheap = !values.empty() && !call.def->asynchronous;
  for (const Tensor& value : values) bytes += value.bytes();
  for (const ArgDef& input : call.def->inputs) cheap = cheap && !input.host;
  if (cheap && bytes <= kCheapBytes)
    return execute(*call.def, values, call.attrs, inputs.arg_sizes());
  const GilRelease release;
  const InterruptScope scope(call.def->asynchronous ? signal_poll() : nullptr);  // it may wait
  return execute(*call.def, values, call.attrs, inputs.arg_sizes());
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

Ref concrete_result(const OpDef& def, std::vector<Tensor> outputs) {
  if (def.outputs.empty()) return Ref::borrow(Py_None);
  // At most one list output has a size that only the count tells.
  const int fixed = static_cast<int>(def.outputs.size()) - 1;
  const int list_size = static_cast<int>(outputs.size()) - fixed;
  return grouped(
      def, [&](int) { return list_size; },
      [&](int i) { return new_concrete_tensor(std::move(outputs[static_cast<size_t>(i)])); });
}

}  // namespace

Ref call_op(const OpCall& call) {
  const OpInputs inputs(call);
  const bool at_once =
      call.mode == CallMode::kImmediate || (call.mode == CallMode::kAuto && call.graph == nullptr &&
                                            inputs.any_concrete() && !inputs.any_symbolic());
  if (at_once) return concrete_result(*call.def, execute_now(call, inputs));
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

std::vector<Tensor> execute_op(const OpCall& call) { return execute_now(call, OpInputs(call)); }

Ref call_binary(const OpDef& def, PyObject* a, PyObject* b) {
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
