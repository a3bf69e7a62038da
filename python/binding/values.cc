// SPDX-License-Identifier: Apache-2.0
// See values.h. Lists are read in two passes: shape and kind of the leaves first, then the values
// in place.
#include "python/binding/values.h"

#include <complex>
#include <limits>

#include "framework/tensor/string_element.h"
#include "python/binding/module.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

enum class Leaf : uint8_t {
  kNone,
  kBool,
  kInt32,
  kInt64,
  kUInt64,
  kFloat,
  kComplex,
  kString,
  kOther
};

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

Leaf integer_leaf(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  if (overflow > 0) {
    PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred()) return Leaf::kUInt64;
    PyErr_Clear();
  }
  if (overflow != 0) throw_value_error("integer ", repr_of(object), " does not fit 64 bits");
  const bool small =
      value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  return small ? Leaf::kInt32 : Leaf::kInt64;
}

Leaf leaf_of(PyObject* object) {
  if (PyFloat_CheckExact(object)) return Leaf::kFloat;
  if (PyBool_Check(object)) return Leaf::kBool;
  if (PyLong_CheckExact(object)) return integer_leaf(object);
  if (is_numpy_scalar(object))
    return Leaf::kOther;  // numpy.float64 is a float, too: its own dtype wins
  if (PyLong_Check(object)) return integer_leaf(object);
  if (PyFloat_Check(object)) return Leaf::kFloat;
  if (PyComplex_Check(object)) return Leaf::kComplex;
  if (PyUnicode_Check(object) || PyBytes_Check(object)) return Leaf::kString;
  return Leaf::kOther;
}

DType natural_dtype(Leaf leaf) {
  switch (leaf) {
    case Leaf::kBool:
      return DType::kBool;
    case Leaf::kInt32:
      return DType::kInt32;
    case Leaf::kInt64:
      return DType::kInt64;
    case Leaf::kUInt64:
      return DType::kUInt64;
    case Leaf::kComplex:
      return DType::kComplex128;
    case Leaf::kString:
      return DType::kString;
    default:
      return DType::kFloat32;  // kFloat, and kNone: an empty list
  }
}

struct Scan {
  int64_t dims[kMaxRank] = {};
  int rank = -1;  // unknown until the first leaf or empty list
  int depth = 0;  // of dims known so far
  Leaf leaf = Leaf::kNone;
};

[[noreturn]] void throw_ragged(const Scan& scan, int axis, int64_t got) {
  throw_value_error("Argument must be a dense tensor: a list on level ", axis, " has ", got,
                    " elements where earlier ones have ", scan.dims[axis]);
}

void scan_list(PyObject* object, int depth, Scan& scan) {
  if (!is_list(object)) {
    if (scan.rank < 0) {
      scan.rank = depth;
    } else if (scan.rank != depth) {
      throw_value_error("Argument must be a dense tensor: ", repr_of(object), " lies ", depth,
                        " lists deep where earlier elements lie ", scan.rank, " deep");
    }
    const Leaf leaf = leaf_of(object);
    const bool mixes =
        scan.leaf != Leaf::kNone && (leaf == Leaf::kString) != (scan.leaf == Leaf::kString);
    if (mixes && leaf != Leaf::kOther && scan.leaf != Leaf::kOther) {
      throw_type_error("a list mixes strings and numbers, such as ", repr_of(object));
    }
    if (leaf > scan.leaf) scan.leaf = leaf;
    return;
  }
  if (depth == kMaxRank)
    throw_value_error("lists nested more than ", kMaxRank, " deep are no tensor");
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  if (depth == scan.depth) {
    if (scan.rank >= 0 && depth >= scan.rank) {
      throw_value_error("Argument must be a dense tensor: ", repr_of(object),
                        " is a list where earlier elements are not");
    }
    scan.dims[scan.depth++] = size;
  } else if (scan.dims[depth] != size) {
    throw_ragged(scan, depth, size);
  }
  if (size == 0 && scan.rank < 0) scan.rank = depth + 1;
  for (Py_ssize_t i = 0; i < size; ++i)
    scan_list(PySequence_Fast_GET_ITEM(object, i), depth + 1, scan);
}

[[noreturn]] void throw_expected(DType wanted, PyObject* object) {
  throw_type_error("Expected ", dtype_name(wanted), ", got ", repr_of(object), " of type '",
                   type_name_of(object), "' instead.");
}

double float_value(PyObject* object, DType wanted) {
  if (PyBool_Check(object) || !(PyFloat_Check(object) || PyLong_Check(object)))
    throw_expected(wanted, object);
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return value;
}

template <class T>
T integer_value(PyObject* object, DType wanted) {
  if (PyBool_Check(object) || !PyLong_Check(object)) throw_expected(wanted, object);
  if constexpr (std::is_same_v<T, uint64_t>) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred()) return value;
    PyErr_Clear();
  } else {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    if (overflow == 0 && value >= static_cast<long long>(std::numeric_limits<T>::min()) &&
        value <= static_cast<long long>(std::numeric_limits<T>::max())) {
      return static_cast<T>(value);
    }
  }
  throw_value_error("integer ", repr_of(object), " does not fit ", dtype_name(wanted));
}

std::complex<double> complex_value(PyObject* object, DType wanted) {
  if (!PyComplex_Check(object)) return float_value(object, wanted);
  return {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
}

template <class T>
T leaf_value(PyObject* object, DType wanted) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!PyBool_Check(object)) throw_expected(wanted, object);
    return object == Py_True;
  } else if constexpr (std::is_same_v<T, StringElement>) {
    if (!PyUnicode_Check(object) && !PyBytes_Check(object)) throw_expected(wanted, object);
    return StringElement(text_of(object, "a string"));
  } else if constexpr (std::is_integral_v<T>) {
    return integer_value<T>(object, wanted);
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return T(complex_value(object, wanted));
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(float_value(object, wanted)));
  } else {
    return static_cast<T>(float_value(object, wanted));
  }
}

template <class T>
void fill(PyObject* object, DType wanted, T*& out) {
  if (!is_list(object)) {
    *out++ = leaf_value<T>(object, wanted);
    return;
  }
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < size; ++i) fill(PySequence_Fast_GET_ITEM(object, i), wanted, out);
}

Tensor filled(PyObject* object, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  dispatch<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t,
           bool, Float16, BFloat16, std::complex<float>, std::complex<double>, StringElement>(
      dtype, [&]<class T>() {
        T* out = tensor.data<T>();
        fill(object, dtype, out);
        if (out != tensor.data<T>() + tensor.num_elements())
          throw_value_error("a list changed while it was read");
      });
  return tensor;
}

// A TensorShape: the vector of its extents.
Tensor from_shape(PyObject* object, PyObject* dims, DType wanted) {
  bool known = PyTuple_Check(dims);
  for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(dims); ++i)
    known = PyTuple_GET_ITEM(dims, i) != Py_None;
  if (!known)
    throw_value_error("Cannot convert a partially known TensorShape to a Tensor: ",
                      repr_of(object));
  if (wanted == DType::kInvalid) wanted = DType::kInt32;
  return filled(dims, wanted, Shape({static_cast<int64_t>(PyTuple_GET_SIZE(dims))}));
}

Tensor from_other(PyObject* object, DType wanted, Casting casting, bool may_borrow) {
  if (object == Py_None) throw_value_error("None values not supported.");
  if (Ref dims = Ref::steal(PyObject_GetAttr(object, state().str_dims)))
    return from_shape(object, dims.get(), wanted);
  PyErr_Clear();
  Ref array = as_array(object);
  if (dtype_of_numpy(array.get()) == DType::kString && !is_list(object) &&
      !PyObject_HasAttrString(object, "__array__")) {
    throw_type_error("Failed to convert object of type '", type_name_of(object),
                     "' to Tensor. Contents: ", repr_of(object),
                     ". Consider casting elements to a supported type.");
  }
  return tensor_from_numpy(array.get(), wanted, casting, may_borrow);
}

}  // namespace

bool is_weakly_typed(PyObject* object, int depth) {
  if (is_list(object)) {
    if (depth > kMaxRank) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (!is_weakly_typed(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return false;
    }
    return true;
  }
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object)) return true;
  if (is_numpy_scalar(object)) return false;
  return PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object) ||
         PyUnicode_Check(object) || PyBytes_Check(object);
}

Tensor tensor_from_object(PyObject* object, DType wanted, Casting casting, bool may_borrow) {
  if (is_array(object)) return tensor_from_numpy(object, wanted, casting, may_borrow);
  if (const Tensor* value = concrete_value(object)) {
    if (wanted == DType::kInvalid || wanted == value->dtype()) return on_host(*value);
    throw_type_error("a tensor of dtype ", dtype_name(value->dtype()), " was given where ",
                     dtype_name(wanted), " is needed");
  }
  if (is_symbolic(object)) {
    throw_type_error(repr_of(object),
                     " has no value before a run: a number, list or array is needed");
  }
  if (wanted == DType::kResource || wanted == DType::kVariant) {
    throw_type_error("a value of dtype ", dtype_name(wanted), " cannot be made from ",
                     repr_of(object));
  }
  if (is_list(object)) {
    Scan scan;
    scan_list(object, 0, scan);
    if (scan.leaf == Leaf::kOther) return from_other(object, wanted, casting, may_borrow);
    const DType dtype = wanted == DType::kInvalid ? natural_dtype(scan.leaf) : wanted;
    return filled(object, dtype,
                  Shape(std::span<const int64_t>(scan.dims, static_cast<size_t>(scan.rank))));
  }
  const Leaf leaf = leaf_of(object);
  if (leaf == Leaf::kOther) return from_other(object, wanted, casting, may_borrow);
  return filled(object, wanted == DType::kInvalid ? natural_dtype(leaf) : wanted, Shape());
}

}  // namespace treenail::python
