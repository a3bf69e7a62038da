// SPDX-License-Identifier: Apache-2.0
// CalledFunction(graph, name, body, site): a function of the graph's, to be called on concrete
// tensors (eager/called_function.h). Tapes are told by whoever calls it (_function_calls.py).
#include "framework/eager/called_function.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/interrupt.h"
#include "framework/graph/recompute.h"
#include "python/binding/gil.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/op_function.h"
#include "python/binding/operation_type.h"
#include "python/binding/signals.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

struct CalledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  CalledFunction* function;
  PyObject* body;  // whose nodes errors name
};

const CalledFunction& function_of(PyObject* self) {
  return *reinterpret_cast<CalledObject*>(self)->function;
}

std::vector<Tensor> tensors_in(PyObject* sequence) {
  Ref items = checked(PySequence_Fast(sequence, "needed is a list of tensors"));
  std::vector<Tensor> tensors;
  tensors.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(items.get(), i);
    const Tensor* const tensor = concrete_value(item);
    if (tensor == nullptr)
      throw_type_error("needed is a tensor of immediate execution, not ", repr_of(item));
    tensors.push_back(*tensor);
  }
  return tensors;
}

// f([argument, ...]) -> [result, ...]
PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto run = [&] {
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != nullptr)
      throw_type_error("a called function takes a list of tensors");
    std::vector<Tensor> arguments = tensors_in(args[0]);
    std::vector<Tensor> results;
    {
      const SignalPoll poll = signal_poll();
      const GilRelease release;
      const InterruptScope scope(poll);
      results = function_of(self).call(std::move(arguments), nullptr);
    }
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      new_concrete_tensor(std::move(results[i])).release());
    }
    return list.release();
  };
  return guarded(run, reinterpret_cast<CalledObject*>(self)->body);
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject *graph, *name, *body, *site;
    if (PyArg_ParseTuple(args, "OOOO", &graph, &name, &body, &site) == 0) throw PythonError();
    graph_from(body);
    const std::string function(text_of(name, "a function's name"));
    Ref self = checked(PyType_GenericAlloc(type, 0));
    auto* const made = reinterpret_cast<CalledObject*>(self.get());
    made->vectorcall = call;
    made->body = new_ref(body);
    made->function = new CalledFunction(graph_from(graph)->state->graph, function,
                                        std::string(text_of(site, "the name of a place")));
    return self.release();
  });
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<CalledObject*>(self)->function;
  Py_CLEAR(reinterpret_cast<CalledObject*>(self)->body);
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CalledObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("A function of a graph, called on concrete tensors.")},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.CalledFunction", sizeof(CalledObject), 0,
                    Py_TPFLAGS_DEFAULT | kVectorcallFlag, slots};

// acts(operation): whether it does something besides giving values: 0 no, 1 it writes to a variable
// that it names, 2 something that is seen in its order with other such operations.
PyObject* acts(PyObject*, PyObject* operation) {
  return guarded([&] {
    const OpInstance& op = node_from(operation, nullptr)->op();
    if (!has_state(op) || op.def().random) return PyLong_FromLong(0);
    int found = 2;
    for (int i = 0; i < op.num_inputs(); ++i) {
      const Access access = op.input_def(i).access;
      if (access == Access::kRead) found = std::min(found, 0);
      if (access == Access::kWrite) found = 1;
    }
    if (op.name() == "VarHandleOp") found = 0;
    return PyLong_FromLong(found);
  });
}

// may_run_again(operation, library): whether it gives the same when it runs again, without effects.
PyObject* runs_again(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *operation, *library;
    if (PyArg_ParseTuple(args, "OO", &operation, &library) == 0) throw PythonError();
    const Node& node = *node_from(operation, nullptr);
    return bool_object(may_run_again(node, *graph_from(library)->state->graph));
  });
}

PyMethodDef functions[] = {
    {"acts", acts, METH_O, nullptr},
    {"may_run_again", runs_again, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_called_functions(PyObject* module) {
  State& s = state();
  if (s.called_function_type == nullptr) s.called_function_type = make_type(spec, true);
  add_type(module, "CalledFunction", s.called_function_type);
  add_methods(module, functions);
}

}  // namespace treenail::python
