// SPDX-License-Identifier: Apache-2.0
// Attribute values between Python and C++, by the kind the op declares.
#pragma once

#include <map>
#include <string>

#include "framework/op/attribute.h"
#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// Errors: TypeError or ValueError naming the attribute, what was given and what is needed.
AttrValue attr_from_object(PyObject* object, const AttrDef& def);
Ref object_from_attr(const AttrValue& value);

// None (unknown rank), TensorShape, an int (rank 1), or a sequence of ints and None.
PartialShape shape_from_object(PyObject* object, const char* what);
// A treenail.TensorShape.
Ref object_from_shape(const PartialShape& shape);
// The extents: a tuple of int or None, or None for an unknown rank.
Ref dims_object(const PartialShape& shape);

// {kind of device: number}, which the caller has checked (_session_options.py).
std::map<std::string, int> device_count_from(PyObject* dict);

}  // namespace treenail::python
