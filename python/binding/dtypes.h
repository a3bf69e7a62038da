// SPDX-License-Identifier: Apache-2.0
// DType objects: one per element type, compared by number; and whatever a caller may write for one.
#pragma once

#include "framework/tensor/dtype.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// The one object of a dtype (borrowed); valid dtypes only.
PyObject* dtype_object(DType dtype);
inline Ref dtype_ref(DType dtype) { return Ref::borrow(dtype_object(dtype)); }
bool is_dtype_object(PyObject* object);
DType dtype_of_object(PyObject* object);  // requires is_dtype_object

// DType, name ("float32", "float"), number, Python type (float, int, bool, complex, str, bytes),
// NumPy dtype or scalar type. Errors: TypeError naming what was given.
DType dtype_from(PyObject* object);
// The same; None gives kInvalid.
inline DType optional_dtype_from(PyObject* object) {
  return object == nullptr || object == Py_None ? DType::kInvalid : dtype_from(object);
}

}  // namespace treenail::python
