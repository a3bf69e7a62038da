// SPDX-License-Identifier: Apache-2.0
// What the files of the binding share: the types, the Python callables the package registers, and
// interned names. One interpreter only (sub-interpreters are refused), so the state is plain
// statics guarded by the GIL.
#pragma once

#include "python/binding/python_api.h"

namespace treenail::python {

struct State {
  PyTypeObject* dtype_type = nullptr;
  PyTypeObject* graph_type = nullptr;
  PyTypeObject* operation_type = nullptr;
  PyTypeObject* tensor_type = nullptr;
  PyTypeObject* op_function_type = nullptr;
  PyTypeObject* session_type = nullptr;
  PyTypeObject* tape_type = nullptr;
  PyTypeObject* called_function_type = nullptr;
  PyTypeObject* public_function_type = nullptr;

  // Registered by the package through register_hooks().
  PyObject* make_error = nullptr;
  PyObject* make_shape = nullptr;
  PyObject* make_default_graph = nullptr;
  PyObject* make_result_type = nullptr;
  PyObject* pack = nullptr;
  PyObject* get_item = nullptr;
  PyObject* matmul = nullptr;
  PyObject* truediv = nullptr;
  PyObject* call_gradient = nullptr;
  PyObject* call_recorded_gradient = nullptr;
  PyObject* capture_concrete = nullptr;
  PyObject* complete_refusal = nullptr;
  PyObject* gradient_body = nullptr;
  PyObject* capture = nullptr;
  PyObject* make_signature = nullptr;
  PyObject* flat_feed = nullptr;
  PyObject* call_py_func = nullptr;

  // Interned strings.
  PyObject* str_tensor = nullptr;         // "__treenail_tensor__"
  PyObject* str_fetch = nullptr;          // "__treenail_fetch__"
  PyObject* str_array = nullptr;          // "__array__"
  PyObject* str_dims = nullptr;           // "_dims"
  PyObject* str_fields = nullptr;         // "_fields"
  PyObject* str_name = nullptr;           // "name"
  PyObject* str_timeout = nullptr;        // "timeout_in_ms"
  PyObject* str_trace_level = nullptr;    // "trace_level"
  PyObject* str_items = nullptr;          // "items"
  PyObject* str_choose_device = nullptr;  // "_choose_device"
};
State& state();

// Each adds its types and functions to the module. Errors: PythonError.
void add_dtypes(PyObject* module);
void add_graph(PyObject* module);
void add_operation(PyObject* module);
void add_tensor(PyObject* module);
void add_op_functions(PyObject* module);
void add_session(PyObject* module);
void add_execute(PyObject* module);
void add_immediate(PyObject* module);
void add_tape(PyObject* module);
void add_called_functions(PyObject* module);
void add_public_functions(PyObject* module);
void add_precision(PyObject* module);

void add_functions(PyObject* module);
void add_gradient_functions(PyObject* module);
void add_dlpack(PyObject* module);
void add_files(PyObject* module);
void add_distributed(PyObject* module);
void add_rare(PyObject* module);
void add_cluster(PyObject* module);
void add_placement(PyObject* module);
void add_py_func();

// Makes a heap type, once per process. `instantiable`: calling it makes an object.
PyTypeObject* make_type(PyType_Spec& spec, bool instantiable);
void add_object(PyObject* module, const char* name,
                PyObject* object);  // takes a reference of its own
void add_type(PyObject* module, const char* name, PyTypeObject* type);
void add_methods(PyObject* module, PyMethodDef* methods);

}  // namespace treenail::python
