// SPDX-License-Identifier: Apache-2.0
// See feed_values.h. The quick way is that of constants; only what it refuses by a TypeError is
// looked at again, so a plain feed pays nothing.
#include "python/binding/feed_values.h"

#include "python/binding/module.h"
#include "python/binding/numpy.h"
#include "python/binding/tensor_type.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

bool is_number(DType dtype) {
  return is_integer(dtype) || is_floating(dtype) || is_complex(dtype) || dtype == DType::kBool;
}

// An array of number objects. They are read as NumPy does, by __float__, __int__ or __bool__.
Tensor from_objects(PyObject* array, DType wanted) {
  const DType read_as = wanted == DType::kBFloat16 ? DType::kFloat32 : wanted;
  check_number_objects(array, wanted);
  const Ref read = cast_array(array, read_as);
  const bool exact = is_integer(wanted) || wanted == DType::kBool;
  if (exact && !same_values(array, read.get())) {
    throw_value_error(repr_of(array), " holds values that do not fit the needed dtype ",
                      dtype_name(wanted));
  }
  return tensor_from_numpy(read.get(), wanted, Casting::kSafeKind, false);
}

Tensor from_numbers(PyObject* value, DType wanted) {
  const Ref array = as_array(value);
  if (is_object_array(array.get())) return from_objects(array.get(), wanted);
  if (wanted != DType::kBool || !is_integer(dtype_of_numpy(array.get())))
    return tensor_from_numpy(array.get(), wanted, Casting::kSafeKind, false);
  const Ref truth = cast_array(array.get(), DType::kBool);
  if (!same_values(array.get(), truth.get())) {
    throw_value_error("integers other than 0 and 1 were given where bool is needed: ",
                      repr_of(value));
  }
  return tensor_from_numpy(truth.get(), DType::kBool, Casting::kSafeKind, false);
}

Tensor converted(PyObject* value, DType dtype) {
  try {
    return tensor_from_object(value, dtype, Casting::kSafeKind, true);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) || !is_number(dtype)) throw;
  }
  RaisedException refusal;
  try {
    return from_numbers(value, dtype);
  } catch (const PythonError&) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Clear();
      throw_value_error(repr_of(value), " does not fit ", dtype_name(dtype));
    }
    // Of what is no array the first refusal says more than how an array of it fared.
    if (PyErr_ExceptionMatches(PyExc_ValueError) || is_array(value)) throw;
    PyErr_Clear();
  }
  refusal.raise();
}

}  // namespace

Tensor feed_value(PyObject* value, Output target) {
  if (is_symbolic(value)) {
    throw_type_error(
        "The value of a feed cannot be a symbolic Tensor (given for ", to_text(target),
        "). Acceptable feed values include Python scalars, strings, lists, and numpy ndarrays.");
  }
  const DType dtype = target.node->op().output_type(target.index);
  const auto prefix = [&] {
    return concat("Cannot feed value for tensor '", to_text(target), "', which has dtype ",
                  dtype_name(dtype), ": ");
  };
  try {
    return converted(value, dtype);
  } catch (const Error& error) {
    throw error.with_prefix(prefix());
  } catch (const PythonError&) {
    const bool type_error = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    if (!type_error && !PyErr_ExceptionMatches(PyExc_ValueError)) throw;
    const RaisedException raised;
    throw_python(type_error ? PyExc_TypeError : PyExc_ValueError, concat(prefix(), raised.text()));
  }
}

}  // namespace treenail::python
