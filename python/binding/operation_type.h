// SPDX-License-Identifier: Apache-2.0
// The Python type Operation: a view of a node, made once per node (graph_type.h keeps it).
#pragma once

#include "framework/graph/graph.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/python_api.h"

namespace treenail::python {

struct OperationObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  GraphObject* graph;
  Node* node;
};

inline bool is_operation(PyObject* object) { return Py_TYPE(object) == state().operation_type; }
Ref new_operation(GraphObject* graph, Node* node);

// The node behind an Operation, Tensor, name, or an object whose attribute `op` is an Operation, of
// this graph. Errors: TypeError, ValueError (another graph), KeyError (no such name).
Node* node_from(PyObject* object, GraphObject* graph);

}  // namespace treenail::python
