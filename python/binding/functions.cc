// SPDX-License-Identifier: Apache-2.0
// Graphs that are bodies of functions: values of the graph around that they come to read, and the
// functions that they become.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/graph/dependents.h"
#include "framework/graph/linearise.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/plan/handle_info.h"
#include "python/binding/graph_lock.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/op_call.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

// Constants of no more bytes are copied into a body rather than passed to it.
constexpr size_t kMostCopied = size_t{1} << 20;

// mark_function_body(graph): from now on operations added to it may read values of other graphs:
// each is given to the hook `capture`, which says what stands for it.
PyObject* mark_function_body(PyObject*, PyObject* graph) {
  return guarded([&] {
    graph_from(graph)->state->captures = true;
    return none();
  });
}

// copied_constant(graph, tensor, name): the tensor of a small Const as one of `graph`; None where
// it is none, and where a gradient may be asked for: then who asks means that of all its uses.
PyObject* copied_constant(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 3 || !is_symbolic(args[1]))
      throw_type_error("copied_constant(graph, tensor, name)");
    GraphObject* const graph = graph_from(args[0]);
    const Output source = output_of(args[1]);
    if (source.node->type() != "Const") return none();
    if (carries_gradient(source.node->op().output_type(0))) return none();
    Tensor value = source.node->op().get<Tensor>("value");
    if (value.bytes() > kMostCopied) return none();
    return constant_tensor(graph, std::move(value), text_of(args[2], "a name"), true).release();
  });
}

// What every value has in common that may come in place of this one.
ValueInfo known_of(PyObject* tensor) {
  if (const Tensor* const value = concrete_value(tensor)) {
    ValueInfo known{.dtype = value->dtype(), .shape = value->shape()};
    known.handle = handle_info_of(*value);
    return known;
  }
  const Output source = output_of(tensor);
  Graph& outer = *graph_of_tensor(tensor)->state->graph;
  return reading(outer, [&] { return source.node->info(source.index); });
}

// body_argument(graph, tensor, name): a placeholder in `graph` of which all is known that is known
// of `tensor`, but its value.
PyObject* body_argument(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 3 || !is_tensor(args[1])) throw_type_error("body_argument(graph, tensor, name)");
    GraphObject* const graph = graph_from(args[0]);
    const ValueInfo known = known_of(args[1]);
    static const OpDef& def = OpRegistry::instance().get("Placeholder");
    const NamedAttr attrs[] = {{"dtype", known.dtype}, {"shape", known.shape}};
    NewNode node;
    node.def = &def;
    node.attrs = attrs;
    node.name = text_of(args[2], "a name");
    node.absolute = true;
    // Arguments wait for nothing: what does so here needs control edges of its own.
    std::vector<Controller> controllers;
    std::swap(controllers, graph->state->context().controllers);
    Node* made = nullptr;
    try {
      made = &add_node(graph, node);
    } catch (...) {
      std::swap(controllers, graph->state->context().controllers);
      throw;
    }
    std::swap(controllers, graph->state->context().controllers);
    Node& added = *made;
    if (known.handle != nullptr) {
      writing(*graph->state->graph, [&] {
        graph->state->graph->set_handle({&added, 0}, *known.handle);
      });
    }
    return tensor_view(graph, {&added, 0}).release();
  });
}

std::vector<Output> values_in(PyObject* list, GraphObject* graph) {
  std::vector<Output> values;
  Ref sequence = checked(PySequence_Fast(list, "needed is a list of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i)
    values.push_back(output_from(PySequence_Fast_GET_ITEM(sequence.get(), i), graph));
  return values;
}

// add_function(library, name, body, inputs, outputs): the body, which nobody changes any more, as a
// function of the graph `library`; its inputs are placeholders. With a sixth argument, true, the
// body may still grow. The name that it got, and whether it has stateful operations.
PyObject* add_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 5 && nargs != 6)
      throw_type_error("add_function(library, name, body, inputs, outputs, may grow)");
    const bool may_grow = nargs == 6 && args[5] == Py_True;
    Graph& library = *graph_from(args[0])->state->graph;
    GraphObject* const body = graph_from(args[2]);
    const std::vector<Output> inputs = values_in(args[3], body);
    const std::vector<Output> outputs = values_in(args[4], body);
    const std::string wanted(text_of(args[1], "a name"));
    const auto rules = body_rules(*body->state);
    std::string added;
    writing(library, [&] {
      added = treenail::add_function(library, wanted, body->state->graph, inputs, outputs, rules,
                                     may_grow);
    });
    Ref name = text_object(added);
    Ref stateful = Ref::steal(bool_object(is_stateful(*body->state->graph)));
    return checked(PyTuple_Pack(2, name.get(), stateful.get())).release();
  });
}

// read_beside(value, results): what `results` read of the graph besides what depends on `value`.
PyObject* read_beside(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2 || !is_symbolic(args[0])) throw_type_error("read_beside(value, results)");
    GraphObject* const graph = graph_of_tensor(args[0]);
    const std::vector<Output> results = values_in(args[1], graph);
    const std::vector<Output> read = reading(
        *graph->state->graph, [&] { return Dependents(output_of(args[0]), results).read(); });
    Ref list = checked(PyList_New(0));
    for (const Output& value : read)
      checked(PyList_Append(list.get(), tensor_view(graph, value).get()));
    return list.release();
  });
}

// copied_dependents(body, value, results, inner value, inner read): `results` in the graph `body`,
// computed from what stands there for `value` and for what read_beside() gives.
PyObject* copied_dependents(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 5 || !is_symbolic(args[1]))
      throw_type_error("copied_dependents(body, value, results, inner value, inner read)");
    GraphObject* const body = graph_from(args[0]);
    GraphObject* const graph = graph_of_tensor(args[1]);
    const std::vector<Output> results = values_in(args[2], graph);
    const Output inner = output_from(args[3], body);
    const std::vector<Output> read = values_in(args[4], body);
    const Dependents dependents =
        reading(*graph->state->graph, [&] { return Dependents(output_of(args[1]), results); });
    if (dependents.read().size() != read.size()) throw_value_error("the graph has changed");
    const std::vector<Output> made = writing(*body->state->graph, [&] {
      return dependents.copied_to(*body->state->graph, inner, read);
    });
    Ref list = checked(PyList_New(0));
    for (const Output& value : made)
      checked(PyList_Append(list.get(), tensor_view(body, value).get()));
    return list.release();
  });
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef functions[] = {
    {"mark_function_body", mark_function_body, METH_O, nullptr},
    {"copied_constant", fast(copied_constant), METH_FASTCALL, nullptr},
    {"body_argument", fast(body_argument), METH_FASTCALL, nullptr},
    {"read_beside", fast(read_beside), METH_FASTCALL, nullptr},
    {"copied_dependents", fast(copied_dependents), METH_FASTCALL, nullptr},
    {"add_function", fast(add_function), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_functions(PyObject* module) { add_methods(module, functions); }

}  // namespace treenail::python
