// SPDX-License-Identifier: Apache-2.0
// Tensors to and from other libraries by DLPack, without a copy where nothing speaks against it.
// Out: the capsule shares the tensor's memory. In: the tensor borrows what is in the capsule, and
// gives it back with the GIL held (loans.h).
#pragma once

#include "framework/tensor/tensor.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// Whether the caller of an exchange wants a copy.
enum class CopyWish : uint8_t { kIfNeeded, kAlways, kNever };
CopyWish copy_wish_from(PyObject* object);  // None, True, False

// The method __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) of a concrete
// value. A versioned capsule is marked read-only and shares the memory. The old one cannot be
// marked: it shares memory that is the tensor's alone and holds a copy of any other. What lies in a
// device's memory is copied where dl_device asks for the host's, else refused. Errors: BufferError,
// TypeError.
Ref dlpack_capsule(const Tensor& value, PyObject* args, PyObject* kwargs);
// Errors: BufferError.
Ref dlpack_device(const Tensor& value);

// A tensor of what `object`, which offers __dlpack__ or is its capsule, gives. Memory with other
// strides, or not aligned to its elements, is copied. Errors: TypeError, BufferError.
Tensor tensor_from_dlpack(PyObject* object, CopyWish copy);

}  // namespace treenail::python
