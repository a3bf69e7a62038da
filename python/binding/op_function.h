// SPDX-License-Identifier: Apache-2.0
// Names of ops in Python.
#pragma once

#include <string>
#include <string_view>

#include "python/binding/python_api.h"

namespace treenail::python {

// "MatMul" → "mat_mul", "Conv2DBackpropInput" → "conv2d_backprop_input".
std::string snake_case(std::string_view name);

#ifdef Py_TPFLAGS_HAVE_VECTORCALL
inline constexpr unsigned int kVectorcallFlag = Py_TPFLAGS_HAVE_VECTORCALL;
#else
inline constexpr unsigned int kVectorcallFlag =
    _Py_TPFLAGS_HAVE_VECTORCALL;  // Python 3.9: same bit, private name
#endif

}  // namespace treenail::python
