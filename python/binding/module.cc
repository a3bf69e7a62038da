// SPDX-License-Identifier: Apache-2.0
// The extension module treenail._treenail. One interpreter per process: sub-interpreters and
// free-threaded builds of CPython are refused with a sentence, because the views of nodes and the
// state of state() are guarded by the one GIL.
#include "python/binding/module.h"

#include <cstring>

#include "python/binding/creation.h"

namespace treenail::python {

State& state() {
  static State instance;
  return instance;
}

PyTypeObject* make_type(PyType_Spec& spec, bool instantiable) {
  auto* type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  if (!instantiable) type->tp_new = nullptr;
  return type;
}

void add_object(PyObject* module, const char* name, PyObject* object) {
  Py_INCREF(object);
  if (PyModule_AddObject(module, name, object) < 0) {
    Py_DECREF(object);
    throw PythonError();
  }
}
void add_type(PyObject* module, const char* name, PyTypeObject* type) {
  add_object(module, name, reinterpret_cast<PyObject*>(type));
}
void add_methods(PyObject* module, PyMethodDef* methods) {
  checked(PyModule_AddFunctions(module, methods));
}

namespace {

void intern(PyObject*& place, const char* text) {
  if (place != nullptr) return;
  place = PyUnicode_InternFromString(text);
  if (place == nullptr) throw PythonError();
}

// register_hooks(name=callable, ...): what the package gives the binding to call.
PyObject* register_hooks(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    State& s = state();
    const struct {
      const char* name;
      PyObject** place;
    } hooks[] = {
        {"make_error", &s.make_error},
        {"make_shape", &s.make_shape},
        {"make_default_graph", &s.make_default_graph},
        {"make_result_type", &s.make_result_type},
        {"pack", &s.pack},
        {"get_item", &s.get_item},
        {"matmul", &s.matmul},
        {"truediv", &s.truediv},
        {"call_gradient", &s.call_gradient},
        {"call_recorded_gradient", &s.call_recorded_gradient},
        {"capture_concrete", &s.capture_concrete},
        {"complete_refusal", &s.complete_refusal},
        {"gradient_body", &s.gradient_body},
        {"capture", &s.capture},
        {"make_signature", &s.make_signature},
        {"flat_feed", &s.flat_feed},
        {"call_py_func", &s.call_py_func},
    };
    if (PyTuple_GET_SIZE(args) != 0 || kwargs == nullptr)
      throw_type_error("register_hooks() takes keywords");
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(kwargs, &position, &key, &value) != 0) {
      const std::string_view name = text_of(key, "a keyword");
      if (name == "package_directory") {
        set_package_directory(std::string(text_of(value, "a directory")));
        continue;
      }
      bool found = false;
      for (const auto& hook : hooks) {
        if (name != hook.name) continue;
        Py_INCREF(value);
        Py_XSETREF(*hook.place, value);
        found = true;
      }
      if (!found) throw_type_error("register_hooks(): no hook is called '", name, "'");
    }
    return none();
  });
}

PyMethodDef functions[] = {
    {"register_hooks", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(register_hooks)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void refuse_other_interpreters() {
#ifdef Py_GIL_DISABLED
  throw_python(
      PyExc_ImportError,
      "treenail does not run on the free-threaded build of CPython: use the ordinary python3");
#endif
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) !=
      PyInterpreterState_GetID(PyInterpreterState_Main())) {
    throw_python(PyExc_ImportError,
                 "treenail runs in the main interpreter only, not in a sub-interpreter");
  }
}

int execute_module(PyObject* module) {
  return guarded_status([&] {
    refuse_other_interpreters();
    State& s = state();
    intern(s.str_tensor, "__treenail_tensor__");
    intern(s.str_fetch, "__treenail_fetch__");
    intern(s.str_array, "__array__");
    intern(s.str_dims, "_dims");
    intern(s.str_fields, "_fields");
    intern(s.str_name, "name");
    intern(s.str_timeout, "timeout_in_ms");
    intern(s.str_trace_level, "trace_level");
    intern(s.str_items, "items");
    intern(s.str_choose_device, "_choose_device");
    add_methods(module, functions);
    add_dtypes(module);
    add_graph(module);
    add_operation(module);
    add_tensor(module);
    add_op_functions(module);
    add_session(module);
    add_execute(module);
    add_immediate(module);
    add_tape(module);
    add_called_functions(module);
    add_public_functions(module);
    add_precision(module);
    add_functions(module);
    add_gradient_functions(module);
    add_files(module);
    add_distributed(module);
    add_placement(module);
    add_dlpack(module);
    add_rare(module);
    add_cluster(module);
    add_py_func();
  });
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute_module)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, nullptr},
};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "treenail._treenail",
    "The compiled part of treenail: graphs, sessions, ops.",
    0,
    nullptr,
    slots,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace
}  // namespace treenail::python

PyMODINIT_FUNC PyInit__treenail() { return PyModuleDef_Init(&treenail::python::definition); }
