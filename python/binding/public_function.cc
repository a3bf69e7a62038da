// SPDX-License-Identifier: Apache-2.0
// PublicFunction: a function of the package as programs see it (_refusals.py): it calls the
// function, and completes what that raises. Some of them are one op with plain arguments: with
// immediate execution they run it without the detour through Python (at_once.py says which).
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "python/binding/module.h"
#include "python/binding/op_call.h"
#include "python/binding/op_function.h"
#include "python/binding/precision.h"
#include "python/binding/quick_call.h"
#include "python/binding/quick_constants.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

enum class Form : uint8_t {
  kNone,
  kInputs,     // f(inputs...): the op's inputs
  kMatrices,   // f(a, b): the same, of two matrices
  kReduction,  // f(x, axis=None, keepdims=None): None means all axes, and False
};

struct PublicObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* called;  // how it is called in messages; None: a method, which is named by its class
  const OpDef* def;
  Form form;
};

PublicObject* cast(PyObject* self) { return reinterpret_cast<PublicObject*>(self); }

bool is_matrix(PyObject* object) {
  const Tensor* const value = concrete_value(object);
  return value != nullptr && value->rank() == 2;
}

Ref quick_reduction(const OpDef& def, PyObject* const* args, size_t nargs) {
  static const auto* const plain = new NamedAttrs();
  static const auto* const keeping = new NamedAttrs{{"keep_dims", true}};
  const ImmediateTensor* const x = immediate_value(args[0]);
  if (x == nullptr || nargs > 3) return {};
  const NamedAttrs* attrs = plain;
  if (nargs == 3 && args[2] == Py_True) {
    attrs = keeping;
  } else if (nargs == 3 && args[2] != Py_None && args[2] != Py_False) {
    return {};
  }
  QuickConstant axes;
  if (nargs == 1 || args[1] == Py_None) {
    static constexpr int32_t kAll[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto rank = static_cast<size_t>(x->tensor.rank());
    if (rank <= std::size(kAll)) axes = quick_integers({kAll, rank});
  } else {
    axes = PyLong_CheckExact(args[1]) ? quick_number(args[1], DType::kInt32)
                                      : quick_integers(args[1], DType::kInt32);
  }
  if (axes == nullptr) return {};
  const ImmediateTensor* const inputs[] = {x, axes.get()};
  return quick_call(def, inputs, *attrs);
}

// Null: by way of the function.
Ref quick(const PublicObject& self, PyObject* const* args, size_t nargs) {
  static const auto* const none = new NamedAttrs();
  if (nargs == 0 || current_mode() != CallMode::kImmediate) return {};
  if (current_precision() != DType::kInvalid) return {};
  if (self.form == Form::kReduction) return quick_reduction(*self.def, args, nargs);
  if (self.form == Form::kMatrices && !(nargs == 2 && is_matrix(args[0]) && is_matrix(args[1])))
    return {};
  if (immediate_value(args[0]) == nullptr) return {};
  return quick_call(*self.def, {args, nargs}, *none);
}

// What was raised, completed: it is set again.
void complete(PublicObject* self, PyObject* const* args, size_t nargs, PyObject* kwnames) {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  const Ref held[] = {Ref::steal(type), Ref::steal(value), Ref::steal(traceback)};
  Ref positional = checked(PyTuple_New(static_cast<Py_ssize_t>(nargs)));
  for (size_t i = 0; i < nargs; ++i)
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), new_ref(args[i]));
  Ref keywords = checked(PyDict_New());
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < count; ++i) {
    checked(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i),
                           args[nargs + static_cast<size_t>(i)]));
  }
  PyObject* arguments[] = {value, self->called, self->function, positional.get(), keywords.get()};
  Ref error = checked(parking(
      [&] { return PyObject_Vectorcall(state().complete_refusal, arguments, 5, nullptr); }));
  PyErr_Restore(new_ref(reinterpret_cast<PyObject*>(Py_TYPE(error.get()))), new_ref(error.get()),
                PyException_GetTraceback(error.get()));
}

PyObject* call(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PublicObject* const self = cast(object);
  const auto nargs = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  PyObject* result = nullptr;
  if (self->form != Form::kNone && kwnames == nullptr) {
    bool ran = false;
    result = guarded([&]() -> PyObject* {
      Ref quickly = quick(*self, args, nargs);
      ran = static_cast<bool>(quickly);
      return quickly.release();
    });
    if (ran || PyErr_Occurred() != nullptr) {
      if (!ran && state().complete_refusal != nullptr)
        guarded_status([&] { complete(self, args, nargs, kwnames); });
      return result;
    }
  }
  result = parking([&] { return PyObject_Vectorcall(self->function, args, nargsf, kwnames); });
  if (result == nullptr && state().complete_refusal != nullptr)
    guarded_status([&] { complete(self, args, nargs, kwnames); });
  return result;
}

Form form_of(std::string_view name) {
  if (name == "inputs") return Form::kInputs;
  if (name == "matrices") return Form::kMatrices;
  if (name == "reduction") return Form::kReduction;
  throw_value_error(
      "a function runs at once in the form 'inputs', 'matrices' or 'reduction', not '", name, "'");
}

// PublicFunction(function, called, op or None, form or None)
PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    PyObject *function, *called, *op, *form;
    if (PyArg_ParseTuple(args, "OOOO", &function, &called, &op, &form) == 0) throw PythonError();
    Ref self = checked(PyType_GenericAlloc(type, 0));
    PublicObject* const made = cast(self.get());
    made->vectorcall = call;
    made->function = new_ref(function);
    made->called = new_ref(called);
    made->dict = checked(PyDict_New()).release();
    if (op != Py_None) {
      made->def = &OpRegistry::instance().get(text_of(op, "an op name"));
      made->form = form_of(text_of(form, "a form"));
    }
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  Py_VISIT(cast(self)->function);
  Py_VISIT(cast(self)->called);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  Py_CLEAR(cast(self)->function);
  Py_CLEAR(cast(self)->called);
  return 0;
}
void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// In a class it is a method.
PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance == nullptr || instance == Py_None ? new_ref(self) : PyMethod_New(self, instance);
}

// Pickles and copies hold its name.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }
PyObject* repr(PyObject* self) { return PyObject_Repr(cast(self)->function); }

PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PublicObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PublicObject, dict), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PublicObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.PublicFunction", sizeof(PublicObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | kVectorcallFlag, slots};

}  // namespace

void add_public_functions(PyObject* module) {
  State& s = state();
  if (s.public_function_type == nullptr) s.public_function_type = make_type(spec, true);
  add_type(module, "PublicFunction", s.public_function_type);
}

}  // namespace treenail::python
