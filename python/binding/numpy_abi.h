// SPDX-License-Identifier: Apache-2.0
// The part of NumPy's binary interface the binding relies on, the same in NumPy 1 and 2: the first
// fields of an array and of a dtype descriptor, type numbers, flags, and a few slots of the
// function table. Source: NumPy's numpy/core/include/numpy/ndarraytypes.h and
// numpy/core/code_generators/numpy_api.py.
#pragma once

#include "python/binding/python_api.h"

namespace treenail::python::numpy_abi {

struct Descr {
  PyObject_HEAD PyTypeObject* typeobj;
  char kind;
  char type;
  char byteorder;  // '>' swapped on little-endian machines, '<' on big-endian ones
  char former_flags;
  int type_num;
};

struct Array {
  PyObject_HEAD char* data;
  int nd;
  Py_intptr_t* dimensions;
  Py_intptr_t* strides;
  PyObject* base;
  Descr* descr;
  int flags;
};

enum TypeNumber : int {
  kBool = 0,
  kByte,
  kUByte,
  kShort,
  kUShort,
  kInt,
  kUInt,
  kLong,
  kULong,
  kLongLong,
  kULongLong,
  kFloat,
  kDouble,
  kLongDouble,
  kCFloat,
  kCDouble,
  kCLongDouble,
  kObject,
  kString,
  kUnicode,
  kVoid,
  kDatetime,
  kTimedelta,
  kHalf,
  kUserDefined = 256,
};

inline constexpr int kCContiguous = 0x0001;
inline constexpr int kForceCast = 0x0010;
inline constexpr int kEnsureCopy = 0x0020;
inline constexpr int kAligned = 0x0100;
inline constexpr int kNotSwapped = 0x0200;
inline constexpr int kWriteable = 0x0400;

// Slots of the function table.
inline constexpr int kGetNDArrayCVersion = 0;
inline constexpr int kArrayType = 2;
inline constexpr int kGenericScalarType = 10;
inline constexpr int kDescrFromType = 45;
inline constexpr int kScalar = 60;
inline constexpr int kFromAny = 69;
inline constexpr int kNewFromDescr = 94;
inline constexpr int kSetBaseObject = 282;

using GetVersionFn = unsigned int (*)();
using DescrFromTypeFn = Descr* (*)(int);
using ScalarFn = PyObject* (*)(void*, Descr*, PyObject*);
using FromAnyFn = PyObject* (*)(PyObject*, Descr*, int, int, int,
                                PyObject*);  // steals the descriptor
using NewFromDescrFn = PyObject* (*)(PyTypeObject*, Descr*, int, const Py_intptr_t*,
                                     const Py_intptr_t*, void*, int,
                                     PyObject*);        // steals the descriptor
using SetBaseObjectFn = int (*)(PyObject*, PyObject*);  // steals the base

}  // namespace treenail::python::numpy_abi
