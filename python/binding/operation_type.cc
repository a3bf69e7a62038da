// SPDX-License-Identifier: Apache-2.0
#include "python/binding/operation_type.h"

#include "framework/device/device_name.h"
#include "python/binding/attributes.h"
#include "python/binding/creation.h"
#include "python/binding/graph_lock.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

OperationObject* cast(PyObject* self) { return reinterpret_cast<OperationObject*>(self); }
Node& node_of(PyObject* self) {
  if (cast(self)->graph == nullptr)
    throw_python(PyExc_RuntimeError, "the graph of this operation is gone");
  return *cast(self)->node;
}
const Graph& graph_of(PyObject* self) { return *cast(self)->graph->state->graph; }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  Py_VISIT(cast(self)->graph);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  Py_CLEAR(cast(self)->graph);
  return 0;
}
void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* get_name(PyObject* self, void*) {
  return guarded([&] { return text_object(node_of(self).name()).release(); });
}
PyObject* get_type(PyObject* self, void*) {
  return guarded([&] { return text_object(node_of(self).type()).release(); });
}
PyObject* get_graph(PyObject* self, void*) {
  return guarded([&] {
    node_of(self);
    return new_ref(as_object(cast(self)->graph));
  });
}
PyObject* get_id(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(node_of(self).id()); });
}
PyObject* get_device(PyObject* self, void*) {
  return guarded([&] {
    const Node& node = node_of(self);
    return text_object(reading(graph_of(self), [&] { return std::string(node.device()); }))
        .release();
  });
}
// Errors: none. As TensorFlow 1 gives them: [b"loc:@name"], of itself where it asks for none.
PyObject* colocation_groups(PyObject* self, PyObject*) {
  return guarded([&] {
    const Node& node = node_of(self);
    auto names = reading(graph_of(self), [&] {
      return std::vector<std::string>(node.colocated_with().begin(), node.colocated_with().end());
    });
    if (names.empty()) names.push_back(node.name());
    Ref list = checked(PyList_New(0));
    for (const std::string& name : names) {
      const std::string group = "loc:@" + name;
      const Ref bytes =
          checked(PyBytes_FromStringAndSize(group.data(), static_cast<Py_ssize_t>(group.size())));
      checked(PyList_Append(list.get(), bytes.get()));
    }
    return list.release();
  });
}

Ref tensor_list(GraphObject* graph, const std::vector<Output>& outputs) {
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    tensor_view(graph, outputs[i]).release());
  }
  return list;
}
PyObject* get_inputs(PyObject* self, void*) {
  return guarded([&] {
    const Node& node = node_of(self);
    const auto inputs = reading(graph_of(self), [&] {
      return std::vector<Output>(node.inputs().begin(), node.inputs().end());
    });
    return tensor_list(cast(self)->graph, inputs).release();
  });
}
PyObject* get_outputs(PyObject* self, void*) {
  return guarded([&] {
    Node& node = node_of(self);
    std::vector<Output> outputs;
    for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back({&node, i});
    return tensor_list(cast(self)->graph, outputs).release();
  });
}
PyObject* get_control_inputs(PyObject* self, void*) {
  return guarded([&] {
    const Node& node = node_of(self);
    const auto nodes = reading(graph_of(self), [&] {
      return std::vector<Node*>(node.control_inputs().begin(), node.control_inputs().end());
    });
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(nodes.size())));
    for (size_t i = 0; i < nodes.size(); ++i) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      operation_view(cast(self)->graph, nodes[i]).release());
    }
    return list.release();
  });
}
PyObject* get_creation(PyObject* self, void*) {
  return guarded([&] { return creation_entries(node_of(self)).release(); });
}
PyObject* get_attrs(PyObject* self, void*) {
  return guarded([&] {
    const OpInstance& op = node_of(self).op();
    Ref dict = checked(PyDict_New());
    for (size_t i = 0; i < op.attrs().size(); ++i) {
      Ref value = object_from_attr(op.attrs()[i]);
      checked(PyDict_SetItemString(dict.get(), op.def().attrs[i].name.c_str(), value.get()));
    }
    return dict.release();
  });
}

PyObject* get_attr(PyObject* self, PyObject* name) {
  return guarded([&] {
    const OpInstance& op = node_of(self).op();
    const std::string_view wanted = text_of(name, "Operation.get_attr(): name");
    const int position = op.def().attr_index(wanted);
    if (position < 0) {
      throw_value_error("Operation.get_attr(): No attr named '", wanted, "' in operation ",
                        node_of(self).name(), " of type ", op.name());
    }
    return object_from_attr(op.attr(position)).release();
  });
}

PyObject* add_control_input(PyObject* self, PyObject* other) {
  return guarded(
      [&] {
        Node& node = node_of(self);
        Node& before = *node_from(other, cast(self)->graph);
        Graph& graph = node.graph();
        writing(graph, [&] { graph.add_control_input(node, before); });
        return none();
      },
      as_object(cast(self)->graph));
}
PyObject* set_device(PyObject* self, PyObject* device) {
  return guarded(
      [&] {
        Node& node = node_of(self);
        const std::string text(text_of(device, "a device"));
        parse_device_name(text);  // for its errors
        Graph& graph = node.graph();
        writing(graph, [&] { graph.set_device(node, text); });
        return none();
      },
      as_object(cast(self)->graph));
}
PyObject* set_shape_attr(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 2) throw_type_error("_set_shape_attr() takes an attribute's name and a shape");
        Node& node = node_of(self);
        const std::string name(text_of(args[0], "an attribute's name"));
        const PartialShape shape = shape_from_object(args[1], "shape");
        Graph& graph = node.graph();
        writing(graph, [&] { graph.set_attr(node, name, shape); });
        return none();
      },
      as_object(cast(self)->graph));
}
PyObject* update_input(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 2) throw_type_error("_update_input() takes an input number and a tensor");
        Node& node = node_of(self);
        const long index = PyLong_AsLong(args[0]);
        if (index == -1 && PyErr_Occurred()) throw PythonError();
        const Output value = output_from(args[1], cast(self)->graph);
        Graph& graph = node.graph();
        writing(graph, [&] { graph.set_input(node, static_cast<int>(index), value); });
        return none();
      },
      as_object(cast(self)->graph));
}

PyObject* repr(PyObject* self) {
  return guarded([&] {
    const Node& node = node_of(self);
    return text_object(concat("<tn.Operation '", node.name(), "' type=", node.type(), ">"))
        .release();
  });
}

PyGetSetDef getset[] = {
    {"name", get_name, nullptr, "The full name, unique in the graph.", nullptr},
    {"type", get_type, nullptr, "The op's name, such as 'MatMul'.", nullptr},
    {"graph", get_graph, nullptr, "The Graph that contains this operation.", nullptr},
    {"device", get_device, nullptr, "The requested device, or ''.", nullptr},
    {"inputs", get_inputs, nullptr, "The tensors this operation takes.", nullptr},
    {"outputs", get_outputs, nullptr, "The tensors this operation gives.", nullptr},
    {"control_inputs", get_control_inputs, nullptr,
     "The operations that run before this one without giving it a value.", nullptr},
    {"_id", get_id, nullptr, "Position in creation order.", nullptr},
    {"_attrs", get_attrs, nullptr, "All attributes, as a dict.", nullptr},
    {"_creation", get_creation, nullptr,
     "Where it was created: (file, line, function) entries, outermost first.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"get_attr", get_attr, METH_O,
     "get_attr($self, name, /)\n--\n\nThe value of an attribute. Raises ValueError when the op has "
     "none of that name."},
    {"colocation_groups", colocation_groups, METH_NOARGS,
     "colocation_groups($self, /)\n--\n\nWhat it must run beside: [b\"loc:@name\"], of itself "
     "where "
     "that is nothing else."},
    {"_add_control_input", add_control_input, METH_O, nullptr},
    {"_set_device", set_device, METH_O, nullptr},
    {"_set_shape_attr", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(set_shape_attr)),
     METH_FASTCALL, nullptr},
    {"_update_input", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(update_input)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OperationObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OperationObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("A node of a graph: an op with its inputs and attributes.")},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.Operation", sizeof(OperationObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

Ref new_operation(GraphObject* graph, Node* node) {
  Ref self = checked(PyType_GenericAlloc(state().operation_type, 0));
  cast(self.get())->graph = reinterpret_cast<GraphObject*>(new_ref(as_object(graph)));
  cast(self.get())->node = node;
  return self;
}

Node* node_from(PyObject* object, GraphObject* graph) {
  const auto same_graph = [&](GraphObject* other, const std::string& name) {
    if (graph != nullptr && other != graph)
      throw_value_error("'", name, "' is not an element of this graph");
  };
  if (is_operation(object)) {
    Node& node = node_of(object);
    same_graph(cast(object)->graph, node.name());
    return &node;
  }
  if (is_symbolic(object)) {
    const Output output = output_of(object);
    same_graph(graph_of_tensor(object), to_text(output));
    return output.node;
  }
  if (PyUnicode_Check(object) && graph != nullptr) {
    std::string name(text_of(object, "a name"));
    Graph& g = *graph->state->graph;
    const bool value = name.find(':') != std::string::npos;
    Node* node = reading(g, [&] { return value ? g.find_output(name).node : g.find(name); });
    if (node == nullptr) {
      throw_python(PyExc_KeyError,
                   concat("The name '", name, "' refers to an Operation not in the graph."));
    }
    return node;
  }
  Ref op = Ref::steal(PyObject_GetAttrString(object, "op"));
  if (op && is_operation(op.get())) return node_from(op.get(), graph);
  PyErr_Clear();
  throw_type_error("needed is an Operation or a Tensor of the graph, not ", repr_of(object),
                   " of type '", type_name_of(object), "'");
}

void add_operation(PyObject* module) {
  State& s = state();
  if (s.operation_type == nullptr) s.operation_type = make_type(spec, false);
  add_type(module, "Operation", s.operation_type);
}

}  // namespace treenail::python
