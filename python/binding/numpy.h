// SPDX-License-Identifier: Apache-2.0
// NumPy arrays in and out, through the C API that NumPy offers in a capsule at run time: no NumPy
// header at build time, one module for NumPy 1 and 2. NumPy is imported on first use. In: a
// C-contiguous, aligned, native array of the wanted dtype is borrowed (small ones are copied). Out:
// memory nobody else shares is handed over, else copied.
#pragma once

#include "framework/tensor/dtype.h"
#include "framework/tensor/tensor.h"
#include "python/binding/loans.h"
#include "python/binding/python_api.h"

namespace treenail::python {

enum class Casting : uint8_t {
  kSafeKind,  // b < u < i < f < c, and integers only where every value fits
  kAny,       // as ndarray.astype
};

// Whether this process has imported NumPy (by us or anybody): if not, no object can be an array.
bool numpy_loaded();
void load_numpy();  // Errors: ImportError

// ndarray (or subclass) or NumPy scalar. Cheap; does not import NumPy.
bool is_array(PyObject* object);
bool is_numpy_scalar(PyObject* object);

// Value of an array or NumPy scalar. wanted == kInvalid: its own dtype. uint16 for a wanted
// bfloat16 is taken as bits. Errors: TypeError (dtype without counterpart, cast not allowed),
// ValueError (integer does not fit).
Tensor tensor_from_numpy(PyObject* object, DType wanted, Casting casting, bool may_borrow);
// numpy.asarray(object): for whatever offers __array__ or the buffer protocol.
Ref as_array(PyObject* object);

// For arrays (not scalars): whether the elements are Python objects; the array as one of the wanted
// dtype, whatever becomes of the values; whether all elements are equal.
bool is_object_array(PyObject* array);
Ref cast_array(PyObject* array, DType wanted);
bool same_values(PyObject* before, PyObject* after);
// Errors: TypeError naming the first element of an object array that is no number.
void check_number_objects(PyObject* array, DType wanted);

// In the host's memory: the tensor itself, or a copy, for which the GIL is given up meanwhile.
// Errors: of the device.
Tensor on_host(const Tensor& tensor);

// Takes over `tensor`'s memory where nobody else shares it. Rank 0 gives a NumPy scalar (strings:
// bytes) when `scalars`. Errors: TypeError for resource and variant.
Ref array_from_tensor(Tensor&& tensor, bool scalars);

Ref numpy_scalar_type(DType dtype);
// What numpy.dtype(object) says; kInvalid when it is no dtype or one without counterpart.
DType dtype_from_numpy(PyObject* object);
// dtype of an array or NumPy scalar; kInvalid when it has no counterpart.
DType dtype_of_numpy(PyObject* object);

}  // namespace treenail::python
