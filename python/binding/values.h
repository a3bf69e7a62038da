// SPDX-License-Identifier: Apache-2.0
// Python values as tensors: numbers, strings, nested lists, arrays and whatever offers __array__.
// Natural dtypes are TensorFlow's: int gives int32 where it fits (else int64), float float32,
// complex complex128, bool bool, str and bytes string.
#pragma once

#include "framework/tensor/tensor.h"
#include "python/binding/numpy.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// In the host's memory. wanted == kInvalid: the natural dtype. `casting` is for arrays; Python
// numbers must fit the wanted dtype: an int may stand for a float, never the other way round.
// Errors: TypeError
// ("Expected int32, got 1.5 of type 'float' instead."), ValueError (None, ragged lists, integers
// out of range).
Tensor tensor_from_object(PyObject* object, DType wanted, Casting casting, bool may_borrow);

// A plain Python number, string or (nested) list of such: something whose dtype adapts to its
// surroundings.
bool is_weakly_typed(PyObject* object, int depth = 0);

}  // namespace treenail::python
