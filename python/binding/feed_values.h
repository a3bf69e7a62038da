// SPDX-License-Identifier: Apache-2.0
// What a run is fed with. As constants, and beyond them what TensorFlow 1 takes by
// numpy.asarray(value, dtype), where no value changes: bool for a number, 0 and 1 for bool, lists
// that mix numbers, and number objects such as decimal.Decimal. A float never stands for an
// integer.
#pragma once

#include "framework/graph/graph.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// The value for `target`. Errors: TypeError, ValueError, InvalidArgument, naming the tensor.
Tensor feed_value(PyObject* value, Output target);

}  // namespace treenail::python
