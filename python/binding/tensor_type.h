// SPDX-License-Identifier: Apache-2.0
// The Python type Tensor. A symbolic one is a view of a node's output, made once per output
// (graph_type.h keeps it); a concrete one holds a value that immediate execution gave.
#pragma once

#include <string>

#include "framework/eager/immediate_tensor.h"
#include "framework/graph/graph.h"
#include "framework/tensor/tensor.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/python_api.h"

namespace treenail::python {

struct TensorObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  GraphObject* graph;  // null: concrete
  Node* node;
  int index;
  ImmediateTensor* value;  // concrete only
};

inline bool is_tensor(PyObject* object) { return Py_TYPE(object) == state().tensor_type; }
inline bool is_symbolic(PyObject* object) {
  return is_tensor(object) && reinterpret_cast<TensorObject*>(object)->graph != nullptr;
}
// Of a symbolic tensor.
inline Output output_of(PyObject* object) {
  const auto* t = reinterpret_cast<TensorObject*>(object);
  return {t->node, t->index};
}
inline GraphObject* graph_of_tensor(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->graph;
}
// The value of a concrete tensor; null for anything else.
inline ImmediateTensor* immediate_value(PyObject* object) {
  return is_tensor(object) ? reinterpret_cast<TensorObject*>(object)->value : nullptr;
}
inline const Tensor* concrete_value(PyObject* object) {
  const ImmediateTensor* const value = immediate_value(object);
  return value != nullptr ? &value->tensor : nullptr;
}

Ref new_tensor(GraphObject* graph, Output output);
Ref new_concrete_tensor(ImmediateTensor value);
inline Ref new_concrete_tensor(Tensor value) {
  return new_concrete_tensor(ImmediateTensor{std::move(value)});
}

// Objects that stand for a tensor (variables) offer __treenail_tensor__(): null reference when
// `object` is none of them.
Ref tensor_protocol(PyObject* object);

// The value behind a symbolic Tensor, an object with __treenail_tensor__, or a name "node:0", of
// `graph`. Errors: TypeError, ValueError (another graph), NotFoundError.
Output output_from(PyObject* object, GraphObject* graph);

// Of a tensor that is used in another graph, where it is of the body of a function: ": it belongs
// to the body of 'cond/true_fn'; return it from there". Else "".
std::string body_of(PyObject* tensor);

// The slots of Python's operators (operators.cc).
extern PyType_Slot tensor_operator_slots[];

}  // namespace treenail::python
