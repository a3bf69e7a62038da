// SPDX-License-Identifier: Apache-2.0
#include "python/binding/attributes.h"

#include <vector>

#include "python/binding/dtypes.h"
#include "python/binding/module.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

[[noreturn]] void throw_kind(const AttrDef& def, PyObject* object) {
  throw_type_error("attribute \"", def.name, "\" must be ", attr_kind_name(def.kind), ", not ",
                   repr_of(object), " of type '", type_name_of(object), "'");
}

std::string prefix(const AttrDef& def) { return concat("attribute \"", def.name, "\": "); }

int64_t int_from(PyObject* object, const AttrDef& def) {
  if (PyFloat_Check(object) || !PyIndex_Check(object)) throw_kind(def, object);
  const bool array = is_array(object);  // may import NumPy, which goes with no error on the way
  Ref index = Ref::steal(PyNumber_Index(object));
  if (!index && array) {  // of more than one element
    PyErr_Clear();
    throw_kind(def, object);
  }
  if (!index) with_prefix([&] { return prefix(def); }, [] { throw PythonError(); });
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw_value_error(prefix(def), "integer ", repr_of(object), " does not fit 64 bits");
  }
  return value;
}

double float_from(PyObject* object, const AttrDef& def) {
  if (PyUnicode_Check(object) || PyBytes_Check(object)) throw_kind(def, object);
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    throw_kind(def, object);
  }
  return value;
}

bool bool_from(PyObject* object, const AttrDef& def) {
  if (PyBool_Check(object)) return object == Py_True;
  if (is_numpy_scalar(object) || PyLong_Check(object)) return checked(PyObject_IsTrue(object)) == 1;
  throw_kind(def, object);
}

std::string string_from(PyObject* object, const AttrDef& def) {
  if (!PyUnicode_Check(object) && !PyBytes_Check(object)) throw_kind(def, object);
  return std::string(text_of(object, "an attribute"));
}

Tensor tensor_from(PyObject* object, const AttrDef& def) {
  return with_prefix(
      [&] { return prefix(def); },
      [&] { return tensor_from_object(object, DType::kInvalid, Casting::kSafeKind, false); });
}

DType type_from(PyObject* object, const AttrDef& def) {
  return with_prefix([&] { return prefix(def); }, [&] { return dtype_from(object); });
}

template <class T, class F>
AttrValue list_of(PyObject* object, const AttrDef& def, F&& element) {
  Ref sequence = Ref::steal(PySequence_Fast(object, ""));
  if (!sequence) {
    PyErr_Clear();
    throw_kind(def, object);
  }
  std::vector<T> out;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence.get());
  out.reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i)
    out.push_back(element(PySequence_Fast_GET_ITEM(sequence.get(), i)));
  return AttrValue(std::move(out));
}

AttrValue list_from(PyObject* object, const AttrDef& def) {
  if (PyUnicode_Check(object) || PyBytes_Check(object) || !PySequence_Check(object))
    throw_kind(def, object);
  switch (def.kind) {
    case AttrKind::kIntList:
      return list_of<int64_t>(object, def, [&](PyObject* o) { return int_from(o, def); });
    case AttrKind::kFloatList:
      return list_of<double>(object, def, [&](PyObject* o) { return float_from(o, def); });
    case AttrKind::kBoolList:
      return list_of<bool>(object, def, [&](PyObject* o) { return bool_from(o, def); });
    case AttrKind::kStringList:
      return list_of<std::string>(object, def, [&](PyObject* o) { return string_from(o, def); });
    case AttrKind::kTypeList:
      return list_of<DType>(object, def, [&](PyObject* o) { return type_from(o, def); });
    case AttrKind::kShapeList:
      return list_of<PartialShape>(
          object, def, [&](PyObject* o) { return shape_from_object(o, def.name.c_str()); });
    case AttrKind::kTensorList:
      return list_of<Tensor>(object, def, [&](PyObject* o) { return tensor_from(o, def); });
    case AttrKind::kFunctionList:
      return list_of<FunctionAttr>(object, def, [&](PyObject* o) {
        return FunctionAttr{string_from(o, def), {}};
      });
    default:
      throw_kind(def, object);
  }
}

int64_t dim_from(PyObject* object, const char* what) {
  if (object == Py_None) return kUnknown;
  if (!PyIndex_Check(object)) {
    throw_type_error(what, ": an extent must be an int or None, not ", repr_of(object),
                     " of type '", type_name_of(object), "'");
  }
  Ref index = with_prefix([&] { return concat(what, ": "); },
                          [&] { return checked(PyNumber_Index(object)); });
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw_value_error(what, ": extent ", repr_of(object), " does not fit 64 bits");
  }
  if (value < 0) {  // -1, too: what is unknown is None, and a wrong sum must not pass for it
    throw_value_error(what, ": an extent must be at least 0, or None where it is not known, not ",
                      value);
  }
  return value;
}

template <class T, class F>
Ref list_object(const std::vector<T>& values, F&& element) {
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), element(values[i]).release());
  }
  return list;
}

Ref int_object(int64_t value) { return checked(PyLong_FromLongLong(value)); }
Ref float_object(double value) { return checked(PyFloat_FromDouble(value)); }
Ref string_object(const std::string& value) { return text_object(value); }
Ref tensor_object(const Tensor& value) {
  Tensor copy = value;
  return array_from_tensor(std::move(copy), false);
}
Ref function_object(const FunctionAttr& value) { return text_object(value.name); }

}  // namespace

AttrValue attr_from_object(PyObject* object, const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::kInt:
      return AttrValue(int_from(object, def));
    case AttrKind::kFloat:
      return AttrValue(float_from(object, def));
    case AttrKind::kBool:
      return AttrValue(bool_from(object, def));
    case AttrKind::kString:
      return AttrValue(string_from(object, def));
    case AttrKind::kType:
      return AttrValue(type_from(object, def));
    case AttrKind::kShape:
      return AttrValue(shape_from_object(object, def.name.c_str()));
    case AttrKind::kTensor:
      return AttrValue(tensor_from(object, def));
    case AttrKind::kFunction:
      return AttrValue(FunctionAttr{string_from(object, def), {}});
    default:
      return list_from(object, def);
  }
}

Ref object_from_attr(const AttrValue& value) {
  switch (value.kind()) {
    case AttrKind::kInt:
      return int_object(value.get<int64_t>());
    case AttrKind::kFloat:
      return float_object(value.get<double>());
    case AttrKind::kBool:
      return Ref::steal(bool_object(value.get<bool>()));
    case AttrKind::kString:
      return string_object(value.get<std::string>());
    case AttrKind::kType:
      return dtype_ref(value.get<DType>());
    case AttrKind::kShape:
      return object_from_shape(value.get<PartialShape>());
    case AttrKind::kTensor:
      return tensor_object(value.get<Tensor>());
    case AttrKind::kFunction:
      return function_object(value.get<FunctionAttr>());
    case AttrKind::kIntList:
      return list_object(value.get<std::vector<int64_t>>(), int_object);
    case AttrKind::kFloatList:
      return list_object(value.get<std::vector<double>>(), float_object);
    case AttrKind::kBoolList:
      return list_object(value.get<std::vector<bool>>(),
                         [](bool b) { return Ref::steal(bool_object(b)); });
    case AttrKind::kStringList:
      return list_object(value.get<std::vector<std::string>>(), string_object);
    case AttrKind::kTypeList:
      return list_object(value.get<std::vector<DType>>(), dtype_ref);
    case AttrKind::kShapeList:
      return list_object(value.get<std::vector<PartialShape>>(), object_from_shape);
    case AttrKind::kTensorList:
      return list_object(value.get<std::vector<Tensor>>(), tensor_object);
    case AttrKind::kFunctionList:
      return list_object(value.get<std::vector<FunctionAttr>>(), function_object);
    case AttrKind::kNone:
      break;
  }
  return Ref::borrow(Py_None);
}

namespace {

// Arrays have the slot of indices, whatever their rank.
bool has_length(PyObject* object) {
  const bool known = is_array(object) && PyObject_Size(object) >= 0;
  PyErr_Clear();
  return known;
}

}  // namespace

PartialShape shape_from_object(PyObject* object, const char* what) {
  if (object == Py_None) return PartialShape();
  if (PyIndex_Check(object) && !has_length(object)) return PartialShape({dim_from(object, what)});
  Ref sequence = Ref::borrow(object);
  if (!PyList_Check(object) && !PyTuple_Check(object)) {
    if (PyObject_HasAttr(object, state().str_dims)) {  // TensorShape
      sequence = checked(PyObject_GetAttr(object, state().str_dims));
      if (sequence.get() == Py_None) return PartialShape();
    } else if (PyUnicode_Check(object) || PyBytes_Check(object)) {
      throw_type_error(what, " must be a shape, not ", repr_of(object));
    }
  }
  Ref fast = Ref::steal(PySequence_Fast(sequence.get(), ""));
  if (!fast) {
    PyErr_Clear();
    throw_type_error(what, " must be a shape (a sequence of ints and None), not ", repr_of(object),
                     " of type '", type_name_of(object), "'");
  }
  const Py_ssize_t rank = PySequence_Fast_GET_SIZE(fast.get());
  if (rank > kMaxRank)
    throw_value_error(what, ": rank ", rank, " is above ", kMaxRank, ", the highest there is");
  int64_t dims[kMaxRank];
  for (Py_ssize_t i = 0; i < rank; ++i)
    dims[i] = dim_from(PySequence_Fast_GET_ITEM(fast.get(), i), what);
  return PartialShape(std::span<const int64_t>(dims, static_cast<size_t>(rank)));
}

Ref dims_object(const PartialShape& shape) {
  if (!shape.rank_known()) return Ref::borrow(Py_None);
  Ref dims = checked(PyTuple_New(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    PyTuple_SET_ITEM(dims.get(), i,
                     shape.dim(i) == kUnknown ? none() : int_object(shape.dim(i)).release());
  }
  return dims;
}

Ref object_from_shape(const PartialShape& shape) {
  Ref dims = dims_object(shape);
  if (state().make_shape == nullptr) return dims;
  return checked(parking([&] { return PyObject_CallOneArg(state().make_shape, dims.get()); }));
}

std::map<std::string, int> device_count_from(PyObject* dict) {
  std::map<std::string, int> counts;
  PyObject *kind = nullptr, *count = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &kind, &count) != 0) {
    counts[std::string(text_of(kind, "a kind of device"))] =
        checked(static_cast<int>(PyLong_AsLong(count)));
  }
  return counts;
}

}  // namespace treenail::python
