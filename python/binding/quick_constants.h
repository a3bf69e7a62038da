// SPDX-License-Identifier: Apache-2.0
// Tensors of the plain Python numbers that programs give to operations: numbers come again, so a
// tensor is kept for each of the last ones. Under the GIL.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "framework/eager/immediate_tensor.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// A share: the next number may take this one's place.
using QuickConstant = std::shared_ptr<const ImmediateTensor>;

// Of a float or an int, as that dtype; null where it does not become one here.
QuickConstant quick_number(PyObject* number, DType dtype);
// Of a list or tuple of a few ints; null as above.
QuickConstant quick_integers(PyObject* sequence, DType dtype);
// int32; null where there are too many.
QuickConstant quick_integers(std::span<const int32_t> values);

}  // namespace treenail::python
