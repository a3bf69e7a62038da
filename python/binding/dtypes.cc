// SPDX-License-Identifier: Apache-2.0
// The Python type DType. Its objects are made once, at import; NumPy is asked only for
// as_numpy_dtype and limits.
#include "python/binding/dtypes.h"

#include <array>

#include "python/binding/module.h"
#include "python/binding/numpy.h"

namespace treenail::python {
namespace {

struct DTypeObject {
  PyObject_HEAD DType dtype;
};

std::array<PyObject*, kNumDTypes> objects;

DType self_dtype(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->dtype; }

PyObject* get_name(PyObject* self, void*) {
  return guarded([&] { return text_object(dtype_name(self_dtype(self))).release(); });
}
PyObject* get_number(PyObject* self, void*) {
  return PyLong_FromLong(static_cast<long>(self_dtype(self)));
}
PyObject* get_size(PyObject* self, void*) {
  return PyLong_FromSize_t(dtype_size(self_dtype(self)));
}
PyObject* get_self(PyObject* self, void*) { return new_ref(self); }
PyObject* get_numpy(PyObject* self, void*) {
  return guarded([&] { return numpy_scalar_type(self_dtype(self)).release(); });
}
PyObject* get_real(PyObject* self, void*) {
  const DType t = self_dtype(self);
  if (t == DType::kComplex64) return new_ref(dtype_object(DType::kFloat32));
  if (t == DType::kComplex128) return new_ref(dtype_object(DType::kFloat64));
  return new_ref(self);
}

template <bool (*Predicate)(DType)>
PyObject* get_flag(PyObject* self, void*) {
  return bool_object(Predicate(self_dtype(self)));
}
bool floating(DType t) { return is_floating(t); }
bool integer(DType t) { return is_integer(t); }
bool unsigned_integer(DType t) { return is_unsigned_integer(t); }
bool complex_number(DType t) { return is_complex(t); }
bool boolean(DType t) { return t == DType::kBool; }
bool numpy_compatible(DType t) { return t != DType::kResource && t != DType::kVariant; }

// Smallest or largest finite value, as NumPy says it; bfloat16, which NumPy lacks, by its bits.
Ref limit(DType t, const char* which) {
  if (t == DType::kBool) return Ref::steal(bool_object(which[1] == 'a'));
  if (t == DType::kBFloat16) {
    const double largest = static_cast<double>(bfloat16_bits_to_float(0x7f7f));
    return checked(PyFloat_FromDouble(which[1] == 'a' ? largest : -largest));
  }
  if (!is_floating(t) && !is_integer(t))
    throw_type_error("dtype ", dtype_name(t), " has no limits");
  Ref numpy = checked(PyImport_ImportModule("numpy"));
  Ref info = checked(parking([&] {
    return PyObject_CallMethod(numpy.get(), is_integer(t) ? "iinfo" : "finfo", "O",
                               numpy_scalar_type(t).get());
  }));
  return checked(PyObject_GetAttrString(info.get(), which));
}
PyObject* get_min(PyObject* self, void*) {
  return guarded([&] { return limit(self_dtype(self), "min").release(); });
}
PyObject* get_max(PyObject* self, void*) {
  return guarded([&] { return limit(self_dtype(self), "max").release(); });
}

PyObject* repr(PyObject* self) {
  return guarded(
      [&] { return text_object(concat("tn.", dtype_name(self_dtype(self)))).release(); });
}
PyObject* str(PyObject* self) {
  return guarded([&] {
    return text_object(concat("<dtype: '", dtype_name(self_dtype(self)), "'>")).release();
  });
}
Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(self_dtype(self)); }

PyObject* compare(PyObject* self, PyObject* other, int op) {
  if (op != Py_EQ && op != Py_NE) return new_ref(Py_NotImplemented);
  bool equal = self == other;
  if (!equal && !is_dtype_object(other) && other != Py_None) {
    try {
      equal = dtype_from(other) == self_dtype(self);
    } catch (...) {
      park_if_thread_ends();
      PyErr_Clear();  // not a dtype: simply different
    }
  }
  return bool_object(equal == (op == Py_EQ));
}

PyObject* is_compatible_with(PyObject* self, PyObject* other) {
  return guarded([&] {
    const DType dtype = with_prefix([] { return "DType.is_compatible_with(): "; },
                                    [&] { return dtype_from(other); });
    return bool_object(dtype == self_dtype(self));
  });
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref module = checked(PyImport_ImportModule("treenail._treenail"));
    Ref function = checked(PyObject_GetAttrString(module.get(), "as_dtype"));
    return Py_BuildValue("O(N)", function.get(),
                         text_object(dtype_name(self_dtype(self))).release());
  });
}

PyGetSetDef getset[] = {
    {"name", get_name, nullptr, "The name, such as 'float32'.", nullptr},
    {"as_datatype_enum", get_number, nullptr,
     "The fixed number of this dtype in files and in the C API.", nullptr},
    {"as_numpy_dtype", get_numpy, nullptr,
     "The NumPy scalar type. string: numpy.object_; bfloat16: ml_dtypes.bfloat16 when that module "
     "is imported, else "
     "numpy.uint16, whose 16 bits are the bfloat16's.",
     nullptr},
    {"size", get_size, nullptr, "Bytes of one element.", nullptr},
    {"base_dtype", get_self, nullptr, "This dtype.", nullptr},
    {"real_dtype", get_real, nullptr, "The dtype of the real part.", nullptr},
    {"is_floating", get_flag<floating>, nullptr, "Whether this is a real floating-point type.",
     nullptr},
    {"is_integer", get_flag<integer>, nullptr, "Whether this is an integer type (bool is not).",
     nullptr},
    {"is_unsigned", get_flag<unsigned_integer>, nullptr,
     "Whether this is an unsigned integer type.", nullptr},
    {"is_complex", get_flag<complex_number>, nullptr, "Whether this is a complex type.", nullptr},
    {"is_bool", get_flag<boolean>, nullptr, "Whether this is bool.", nullptr},
    {"is_numpy_compatible", get_flag<numpy_compatible>, nullptr, "Whether values can be arrays.",
     nullptr},
    {"min", get_min, nullptr, "Smallest finite value. Raises TypeError for non-numeric dtypes.",
     nullptr},
    {"max", get_max, nullptr, "Largest finite value. Raises TypeError for non-numeric dtypes.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"is_compatible_with", is_compatible_with, METH_O,
     "is_compatible_with(other)\n--\n\nWhether `other` names this dtype."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_str, reinterpret_cast<void*>(str)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     const_cast<char*>(
         "The type of a tensor's elements. Equal to whatever names it: tn.float32 == 'float32'.")},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.DType", sizeof(DTypeObject), 0, Py_TPFLAGS_DEFAULT, slots};

PyObject* as_dtype(PyObject*, PyObject* object) {
  return guarded([&] {
    const DType dtype =
        with_prefix([] { return "as_dtype(): "; }, [&] { return dtype_from(object); });
    return new_ref(dtype_object(dtype));
  });
}
PyMethodDef functions[] = {
    {"as_dtype", as_dtype, METH_O,
     "as_dtype(type_value, /)\n--\n\nThe DType that `type_value` names: a DType, a name, a number, "
     "a Python type, a NumPy "
     "dtype or scalar type. Raises TypeError."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* dtype_object(DType dtype) { return objects[static_cast<size_t>(dtype)]; }
bool is_dtype_object(PyObject* object) { return Py_TYPE(object) == state().dtype_type; }
DType dtype_of_object(PyObject* object) { return self_dtype(object); }

DType dtype_from(PyObject* object) {
  if (is_dtype_object(object)) return self_dtype(object);
  if (PyUnicode_Check(object)) {
    try {
      return dtype_from_name(text_of(object, "a dtype"));
    } catch (const Error&) {
      throw_type_error("no dtype is called ", repr_of(object));
    }
  }
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kFloat32;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::kComplex128;
  if (object == reinterpret_cast<PyObject*>(&PyUnicode_Type) ||
      object == reinterpret_cast<PyObject*>(&PyBytes_Type) ||
      object == reinterpret_cast<PyObject*>(&PyBaseObject_Type)) {
    return DType::kString;
  }
  if (PyLong_CheckExact(object)) {
    const long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred()) PyErr_Clear();
    if (number > 0 && number < kNumDTypes && dtype_is_valid(static_cast<int>(number)))
      return static_cast<DType>(number);
    throw_type_error("no dtype has the number ", repr_of(object));
  }
  if (object != Py_None && numpy_loaded()) {  // numpy.dtype(None) is float64
    const DType dtype = dtype_from_numpy(object);
    if (dtype != DType::kInvalid) return dtype;
  }
  throw_type_error("cannot take ", repr_of(object), " of type '", type_name_of(object),
                   "' for a dtype: needed is a DType, a name, a Python or NumPy type");
}

void add_dtypes(PyObject* module) {
  State& s = state();
  if (s.dtype_type == nullptr) {
    s.dtype_type = make_type(spec, false);
    for (int number = 0; number < kNumDTypes; ++number) {
      if (!dtype_is_valid(number)) continue;
      Ref object = checked(PyType_GenericAlloc(s.dtype_type, 0));
      reinterpret_cast<DTypeObject*>(object.get())->dtype = static_cast<DType>(number);
      objects[static_cast<size_t>(number)] = object.release();
    }
  }
  add_type(module, "DType", s.dtype_type);
  for (int number = 0; number < kNumDTypes; ++number) {
    PyObject* object = objects[static_cast<size_t>(number)];
    if (object == nullptr) continue;
    add_object(module, std::string(dtype_name(static_cast<DType>(number))).c_str(), object);
  }
  add_methods(module, functions);
}

}  // namespace treenail::python
