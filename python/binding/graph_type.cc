// SPDX-License-Identifier: Apache-2.0
#include "python/binding/graph_type.h"

#include <algorithm>

#include "framework/device/device_name.h"
#include "framework/op/op_registry.h"
#include "python/binding/creation.h"
#include "python/binding/graph_lock.h"
#include "python/binding/module.h"
#include "python/binding/operation_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

GraphObject* cast(PyObject* self) { return reinterpret_cast<GraphObject*>(self); }
GraphState& state_of(PyObject* self) { return *cast(self)->state; }

// The stack of `with graph.as_default()` on this thread: owned references. A plain pointer, because
// a thread may end when nobody may touch Python objects any more.
thread_local std::vector<PyObject*>* graph_stack = nullptr;
PyObject* process_graph = nullptr;

// --- Life ----------------------------------------------------------------------------------------

PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    Ref self = checked(type->tp_alloc(type, 0));
    cast(self.get())->state = new GraphState{std::make_shared<Graph>()};
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  if (cast(self)->state == nullptr) return 0;
  for (NodeViews& views : state_of(self).views) {
    Py_VISIT(views.operation);
    Py_VISIT(views.first);
    Py_VISIT(views.others);
  }
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  if (cast(self)->state == nullptr) return 0;
  std::vector<NodeViews> views;
  views.swap(state_of(self).views);
  for (NodeViews& v : views) {
    Py_CLEAR(v.operation);
    Py_CLEAR(v.first);
    Py_CLEAR(v.others);
  }
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  if (cast(self)->state != nullptr) drop_building_context(state_of(self).context_id);
  delete cast(self)->state;
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// --- Building context ----------------------------------------------------------------------------

std::string full_name(const GraphState& s, std::string_view wanted) {
  if (wanted.ends_with('/')) return std::string(wanted.substr(0, wanted.size() - 1));
  return concat(s.context().scope, wanted);
}

std::vector<Node*> control_inputs_for(const GraphState& s, const NewNode& node) {
  std::vector<Node*> result;
  for (const Controller& controller : s.context().controllers) {
    if (controller.clears) result.clear();
    const bool implied =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](const Output& input) { return controller.made.contains(input.node); });
    if (!implied) result.insert(result.end(), controller.inputs.begin(), controller.inputs.end());
  }
  result.insert(result.end(), node.control_inputs.begin(), node.control_inputs.end());
  return result;
}

PyObject* unique_name(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs < 1 || nargs > 2)
      throw_type_error("unique_name() takes a name and optionally mark_as_used");
    const std::string wanted = full_name(state_of(self), text_of(args[0], "a name"));
    const bool mark = nargs < 2 || checked(PyObject_IsTrue(args[1])) == 1;
    Graph& graph = *state_of(self).graph;
    return text_object(writing(graph, [&] { return graph.unique_name(wanted, mark); })).release();
  });
}

PyObject* get_scope(PyObject* self, void*) {
  return guarded([&] { return text_object(state_of(self).context().scope).release(); });
}
int set_scope(PyObject* self, PyObject* value, void*) {
  return guarded_status([&] { state_of(self).context().scope = text_of(value, "a name scope"); });
}
PyObject* get_device(PyObject* self, void*) {
  return guarded([&] { return text_object(state_of(self).context().device).release(); });
}
int set_device(PyObject* self, PyObject* value, void*) {
  return guarded_status([&] {
    const std::string_view name = text_of(value, "a device");
    parse_device_name(name);  // for its errors
    state_of(self).context().ask_for_device(name);
  });
}

PyObject* get_colocated(PyObject* self, void*) {
  return guarded([&] {
    const std::vector<std::string>& names = state_of(self).context().colocated;
    Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    for (size_t i = 0; i < names.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), text_object(names[i]).release());
    return tuple.release();
  });
}
int set_colocated(PyObject* self, PyObject* value, void*) {
  return guarded_status([&] {
    const Ref items = checked(PySequence_Tuple(value));
    std::vector<std::string> names;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      names.emplace_back(text_of(PyTuple_GET_ITEM(items.get(), i), "an operation's name"));
    state_of(self).context().colocated = std::move(names);
  });
}

PyObject* get_container(PyObject* self, void*) {
  return guarded([&] { return text_object(state_of(self).context().container).release(); });
}
int set_container(PyObject* self, PyObject* value, void*) {
  return guarded_status(
      [&] { state_of(self).context().container = text_of(value, "a container"); });
}

PyObject* get_device_functions(PyObject* self, void*) {
  return guarded([&] { return bool_object(state_of(self).context().device_functions); });
}
int set_device_functions(PyObject* self, PyObject* value, void*) {
  return guarded_status([&] {
    const bool wanted = checked(PyObject_IsTrue(value)) == 1;
    state_of(self).context().device_functions = wanted;
  });
}

PyObject* push_controllers(PyObject* self, PyObject* nodes) {
  return guarded([&] {
    Controller controller;
    controller.clears = nodes == Py_None;
    if (!controller.clears) {
      Ref sequence = checked(PySequence_Fast(nodes, "control inputs must be a list"));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
        Node* node = node_from(PySequence_Fast_GET_ITEM(sequence.get(), i), cast(self));
        if (std::find(controller.inputs.begin(), controller.inputs.end(), node) ==
            controller.inputs.end()) {
          controller.inputs.push_back(node);
        }
      }
    }
    state_of(self).context().controllers.push_back(std::move(controller));
    return none();
  });
}
PyObject* pop_controllers(PyObject* self, PyObject*) {
  if (!state_of(self).context().controllers.empty())
    state_of(self).context().controllers.pop_back();
  return none();
}
PyObject* has_controllers(PyObject* self, PyObject*) {
  const auto& controllers = state_of(self).context().controllers;
  return bool_object(!controllers.empty() &&
                     !(controllers.back().clears && controllers.back().inputs.empty()));
}

// --- Nodes ---------------------------------------------------------------------------------------

PyObject* find_operation(PyObject* self, PyObject* name) {
  return guarded([&] {
    const std::string wanted(text_of(name, "a name"));
    Graph& graph = *state_of(self).graph;
    Node* node = reading(graph, [&] { return graph.find(wanted); });
    return node == nullptr ? none() : operation_view(cast(self), node).release();
  });
}

PyObject* find_tensor(PyObject* self, PyObject* name) {
  return guarded(
      [&] {
        const std::string wanted(text_of(name, "a name"));
        Graph& graph = *state_of(self).graph;
        const Output output = reading(graph, [&] { return graph.find_output(wanted); });
        return tensor_view(cast(self), output).release();
      },
      self);
}

PyObject* get_operations(PyObject* self, PyObject*) {
  return guarded([&] {
    Graph& graph = *state_of(self).graph;
    std::vector<Node*> nodes;
    reading(graph, [&] {
      for (int id = 0; id < graph.num_nodes(); ++id) {
        if (graph.node(id) != nullptr) nodes.push_back(graph.node(id));
      }
    });
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(nodes.size())));
    for (size_t i = 0; i < nodes.size(); ++i) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      operation_view(cast(self), nodes[i]).release());
    }
    return list.release();
  });
}

PyObject* finalize(PyObject* self, PyObject*) {
  Graph& graph = *state_of(self).graph;
  writing(graph, [&] { graph.finalize(); });
  return none();
}
// For a training session, which finalizes the program's graph while it lasts.
PyObject* unfinalize(PyObject* self, PyObject*) {
  Graph& graph = *state_of(self).graph;
  writing(graph, [&] { graph.unfinalize(); });
  return none();
}
PyObject* get_finalized(PyObject* self, void*) {
  return bool_object(state_of(self).graph->finalized());
}
PyObject* get_version(PyObject* self, void*) {
  Graph& graph = *state_of(self).graph;
  return PyLong_FromLongLong(reading(graph, [&] { return graph.version(); }));
}
PyObject* get_num_nodes(PyObject* self, void*) {
  Graph& graph = *state_of(self).graph;
  return PyLong_FromLong(reading(graph, [&] { return graph.num_nodes(); }));
}

PyObject* get_seed(PyObject* self, void*) {
  const Graph& graph = *state_of(self).graph;
  return graph.has_seed ? PyLong_FromLongLong(graph.seed) : none();
}
int set_seed(PyObject* self, PyObject* value, void*) {
  return guarded_status([&] {
    Graph& graph = *state_of(self).graph;
    graph.has_seed = value != nullptr && value != Py_None;
    if (graph.has_seed) {
      graph.seed = PyLong_AsLongLong(value);
      if (graph.seed == -1 && PyErr_Occurred()) throw PythonError();
    }
  });
}

// --- Default graphs ------------------------------------------------------------------------------

PyObject* push_default(PyObject*, PyObject* graph) {
  return guarded([&] {
    graph_from(graph);
    if (graph_stack == nullptr) graph_stack = new std::vector<PyObject*>();
    graph_stack->push_back(new_ref(graph));
    return none();
  });
}
PyObject* pop_default(PyObject*, PyObject* graph) {
  return guarded([&] {
    if (graph_stack == nullptr || graph_stack->back() != graph) {
      throw_python(PyExc_AssertionError, "Nesting violated for default stack of graphs");
    }
    Ref top = Ref::steal(graph_stack->back());
    graph_stack->pop_back();
    if (graph_stack->empty()) {
      delete graph_stack;
      graph_stack = nullptr;
    }
    return none();
  });
}
PyObject* get_default(PyObject*, PyObject*) {
  return guarded([&] { return new_ref(as_object(default_graph())); });
}
PyObject* reset_default(PyObject*, PyObject*) {
  return guarded([&] {
    if (graph_stack != nullptr) {
      throw_python(PyExc_AssertionError,
                   "Do not use tn.reset_default_graph() to clear nested graphs. If you need a "
                   "cleared graph, exit the "
                   "nesting and create a new graph.");
    }
    Py_CLEAR(process_graph);
    return none();
  });
}

// replace_default_graph(graph): as the process-wide one; False, and nothing changes, where that has
// operations or the thread has a default graph of its own.
PyObject* replace_default(PyObject*, PyObject* graph) {
  return guarded([&] {
    graph_from(graph);
    if (graph_stack != nullptr) return bool_object(false);
    if (process_graph != nullptr) {
      Graph& old = *cast(process_graph)->state->graph;
      if (reading(old, [&] { return old.num_nodes(); }) > 0) return bool_object(false);
    }
    Py_INCREF(graph);
    Py_XSETREF(process_graph, graph);
    return bool_object(true);
  });
}

PyGetSetDef getset[] = {
    {"_scope", get_scope, set_scope, "The current name scope: '' or 'a/b/'.", nullptr},
    {"_container", get_container, set_container, "The container of new operations' state.",
     nullptr},
    {"_device", get_device, set_device, "The device of new operations.", nullptr},
    {"_colocated", get_colocated, set_colocated,
     "Names of the operations that new ones must run beside.", nullptr},
    {"_asks_for_devices", get_device_functions, set_device_functions,
     "Whether _choose_device(operation) is called for each new operation.", nullptr},
    {"finalized", get_finalized, nullptr, "Whether the graph can no longer be changed.", nullptr},
    {"version", get_version, nullptr, "A number that grows with every change of the graph.",
     nullptr},
    {"_num_nodes", get_num_nodes, nullptr, "How many operations the graph has.", nullptr},
    {"seed", get_seed, set_seed, "The graph-level random seed, or None.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"_unique_name", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(unique_name)),
     METH_FASTCALL, nullptr},
    {"_push_controllers", push_controllers, METH_O, nullptr},
    {"_pop_controllers", pop_controllers, METH_NOARGS, nullptr},
    {"_has_controllers", has_controllers, METH_NOARGS, nullptr},
    {"_find_operation", find_operation, METH_O, nullptr},
    {"_find_tensor", find_tensor, METH_O, nullptr},
    {"get_operations", get_operations, METH_NOARGS,
     "get_operations($self, /)\n--\n\nAll operations of the graph, in creation order."},
    {"_unsafe_unfinalize", unfinalize, METH_NOARGS, nullptr},
    {"finalize", finalize, METH_NOARGS,
     "finalize($self, /)\n--\n\nForbids further changes: they raise FailedPreconditionError."},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(GraphObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(GraphObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("The core of treenail.Graph.")},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.GraphBase", sizeof(GraphObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
PyMethodDef functions[] = {
    {"push_default_graph", push_default, METH_O, nullptr},
    {"pop_default_graph", pop_default, METH_O, nullptr},
    {"get_default_graph", get_default, METH_NOARGS,
     "get_default_graph()\n--\n\nThe innermost graph of `with graph.as_default()` on this thread, "
     "else the process-wide one."},
    {"replace_default_graph", replace_default, METH_O, nullptr},
    {"reset_default_graph", reset_default, METH_NOARGS,
     "reset_default_graph()\n--\n\nForgets the process-wide default graph: the next operation "
     "begins a new one."},
    {nullptr, nullptr, 0, nullptr},
};

NodeViews& views_of(GraphObject* graph, int id) {
  auto& views = graph->state->views;
  if (static_cast<size_t>(id) >= views.size())
    views.resize(std::max(static_cast<size_t>(id) + 1, 2 * views.size()));
  return views[static_cast<size_t>(id)];
}

}  // namespace

bool is_graph(PyObject* object) { return PyObject_TypeCheck(object, state().graph_type); }
GraphObject* graph_from(PyObject* object) {
  if (!is_graph(object)) throw_type_error("needed is a Graph, not ", repr_of(object));
  return cast(object);
}

GraphObject* default_graph() {
  if (graph_stack != nullptr) return cast(graph_stack->back());
  if (process_graph == nullptr) {
    Ref made = checked(parking([&] { return PyObject_CallNoArgs(state().make_default_graph); }));
    graph_from(made.get());
    process_graph = made.release();
  }
  return cast(process_graph);
}

// Making a view may run the cyclic collector, hence anything: look again before storing.
Ref operation_view(GraphObject* graph, Node* node) {
  if (PyObject* known = views_of(graph, node->id()).operation) return Ref::borrow(known);
  Ref made = new_operation(graph, node);
  PyObject*& place = views_of(graph, node->id()).operation;
  if (place == nullptr) place = made.release();
  return Ref::borrow(place);
}

Ref tensor_view(GraphObject* graph, Output output) {
  const int id = output.node->id();
  if (output.index == 0) {
    if (PyObject* known = views_of(graph, id).first) return Ref::borrow(known);
    Ref made = new_tensor(graph, output);
    PyObject*& place = views_of(graph, id).first;
    if (place == nullptr) place = made.release();
    return Ref::borrow(place);
  }
  if (views_of(graph, id).others == nullptr) {
    Ref list = checked(PyList_New(0));
    PyObject*& place = views_of(graph, id).others;
    if (place == nullptr) place = list.release();
  }
  // The node may have grown since.
  PyObject* const others = views_of(graph, id).others;
  while (PyList_GET_SIZE(others) < output.node->num_outputs() - 1) {
    const int index = static_cast<int>(PyList_GET_SIZE(others)) + 1;
    checked(PyList_Append(others, new_tensor(graph, {output.node, index}).get()));
  }
  return Ref::borrow(PyList_GET_ITEM(views_of(graph, id).others, output.index - 1));
}

// The attributes, and the container of the context where the operation has one and names none.
// `room`: for the longer list.
std::span<const NamedAttr> in_container(const BuildingContext& context, const OpDef& def,
                                        std::span<const NamedAttr> given, NamedAttrs& room) {
  if (context.container.empty() || def.attr_index("container") < 0) return given;
  room.assign(given.begin(), given.end());
  const auto named = std::ranges::find(room, "container", &NamedAttr::first);
  if (named == room.end()) {
    room.emplace_back("container", context.container);
  } else if (named->second.get<std::string>().empty()) {
    named->second = context.container;
  }
  return room;
}

Node& add_node(GraphObject* graph, const NewNode& node) {
  GraphState& s = *graph->state;
  const std::string_view wanted = node.name.empty() ? std::string_view(node.def->name) : node.name;
  const std::string name = node.absolute ? std::string(wanted) : full_name(s, wanted);
  std::vector<Node*> control_inputs;
  if (!s.context().controllers.empty() || !node.control_inputs.empty())
    control_inputs = control_inputs_for(s, node);
  NamedAttrs attrs;
  NodeSpec node_spec;
  node_spec.op = node.def->name;
  node_spec.name = name;
  node_spec.name_reserved = wanted.ends_with('/');
  node_spec.inputs = node.inputs;
  node_spec.attrs = in_container(s.context(), *node.def, node.attrs, attrs);
  node_spec.arg_sizes = node.arg_sizes;
  node_spec.control_inputs = control_inputs;
  node_spec.device = s.context().device;
  node_spec.colocated = s.context().colocated;
  node_spec.creation = capture_creation();
  Graph& g = *s.graph;
  Node& added = writing(g, [&]() -> Node& { return g.add(node_spec); });
  BuildingContext& context = s.context();
  for (Controller& controller : context.controllers) controller.made.insert(&added);
  if (!context.gradient_map.empty()) {
    const auto it = context.gradient_map.find(node.def->name);
    if (it != context.gradient_map.end()) s.gradient_overrides.emplace(&added, it->second);
  }
  if (context.device_functions) {
    const Ref operation = operation_view(graph, &added);
    checked(parking([&] {
      return PyObject_CallMethodOneArg(as_object(graph), state().str_choose_device,
                                       operation.get());
    }));
  }
  return added;
}

std::shared_ptr<const BodyRules> body_rules(const GraphState& state) {
  if (state.gradient_overrides.empty() && state.copy_of.empty()) return nullptr;
  auto rules = std::make_shared<BodyRules>();
  for (const auto& [node, name] : state.gradient_overrides)
    rules->names.emplace(node->name(), name);
  rules->copy_of = state.copy_of;
  return rules;
}

void add_graph(PyObject* module) {
  State& s = state();
  if (s.graph_type == nullptr) s.graph_type = make_type(spec, true);
  add_type(module, "GraphBase", s.graph_type);
  add_methods(module, functions);
}

}  // namespace treenail::python
