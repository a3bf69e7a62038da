// SPDX-License-Identifier: Apache-2.0
// Python's operators on tensors. == and != compare identity, as in TensorFlow 1, so tensors can be
// keys of dictionaries.
#include "framework/op/op_registry.h"
#include "python/binding/op_call.h"
#include "python/binding/quick_call.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

struct Names {
  static constexpr char kAdd[] = "Add";
  static constexpr char kSub[] = "Sub";
  static constexpr char kMul[] = "Mul";
  static constexpr char kFloorDiv[] = "FloorDiv";
  static constexpr char kFloorMod[] = "FloorMod";
  static constexpr char kPow[] = "Pow";
  static constexpr char kAnd[] = "LogicalAnd";
  static constexpr char kOr[] = "LogicalOr";
  static constexpr char kNotEqual[] = "NotEqual";
  static constexpr char kNot[] = "LogicalNot";
  static constexpr char kNeg[] = "Neg";
};

const OpDef& op(const char* name) { return OpRegistry::instance().get(name); }

// What this operator can do nothing with is left to the other operand.
bool foreign(PyObject* other) { return other == Py_None; }

template <const char* Name>
PyObject* binary(PyObject* a, PyObject* b) {
  if (foreign(a) || foreign(b)) return new_ref(Py_NotImplemented);
  return guarded([&] {
    static const OpDef& def = op(Name);
    return call_binary(def, a, b).release();
  });
}

template <const char* Name>
PyObject* unary(PyObject* a) {
  return guarded([&] {
    static const OpDef& def = op(Name);
    return call_unary(def, a).release();
  });
}

DType dtype_of_operand(PyObject* object) {
  if (const Tensor* value = concrete_value(object)) return value->dtype();
  if (!is_symbolic(object)) return DType::kInvalid;
  const Output output = output_of(object);
  return output.node->op().output_type(output.index);
}

// x / y of integers is a floating-point number, as in Python: the package casts and divides.
PyObject* true_divide(PyObject* a, PyObject* b) {
  if (foreign(a) || foreign(b)) return new_ref(Py_NotImplemented);
  return guarded([&] {
    static const OpDef& def = op("RealDiv");
    const DType dtype = is_tensor(a) ? dtype_of_operand(a) : dtype_of_operand(b);
    if (is_floating(dtype) || is_complex(dtype)) return call_binary(def, a, b).release();
    PyObject* arguments[] = {a, b};
    return parking([&] { return PyObject_Vectorcall(state().truediv, arguments, 2, nullptr); });
  });
}

PyObject* matrix_multiply(PyObject* a, PyObject* b) {
  PyObject* arguments[] = {a, b};
  return parking([&] { return PyObject_Vectorcall(state().matmul, arguments, 2, nullptr); });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return new_ref(Py_NotImplemented);
  return binary<Names::kPow>(a, b);
}

PyObject* absolute(PyObject* a) {
  return guarded([&] {
    static const OpDef& real = op("Abs");
    static const OpDef& complex = op("ComplexAbs");
    return call_unary(is_complex(dtype_of_operand(a)) ? complex : real, a).release();
  });
}

PyObject* subscript(PyObject* self, PyObject* key) {
  bool quick = false;
  PyObject* const result = guarded([&] {
    Ref part = quick_subscript(self, key);
    quick = static_cast<bool>(part);
    return part.release();
  });
  if (quick || PyErr_Occurred() != nullptr) return result;
  PyObject* arguments[] = {self, key};
  return parking([&] { return PyObject_Vectorcall(state().get_item, arguments, 2, nullptr); });
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  const char* name = nullptr;
  switch (operation) {
    case Py_LT:
      name = "Less";
      break;
    case Py_LE:
      name = "LessEqual";
      break;
    case Py_GT:
      name = "Greater";
      break;
    case Py_GE:
      name = "GreaterEqual";
      break;
    default:
      return new_ref(Py_NotImplemented);
  }
  if (foreign(b)) return new_ref(Py_NotImplemented);
  return guarded([&] { return call_binary(op(name), a, b).release(); });
}

Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4);
}

}  // namespace

PyType_Slot tensor_operator_slots[] = {
    {Py_nb_add, reinterpret_cast<void*>(binary<Names::kAdd>)},
    {Py_nb_subtract, reinterpret_cast<void*>(binary<Names::kSub>)},
    {Py_nb_multiply, reinterpret_cast<void*>(binary<Names::kMul>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(true_divide)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(binary<Names::kFloorDiv>)},
    {Py_nb_remainder, reinterpret_cast<void*>(binary<Names::kFloorMod>)},
    {Py_nb_power, reinterpret_cast<void*>(power)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(matrix_multiply)},
    {Py_nb_and, reinterpret_cast<void*>(binary<Names::kAnd>)},
    {Py_nb_or, reinterpret_cast<void*>(binary<Names::kOr>)},
    {Py_nb_xor, reinterpret_cast<void*>(binary<Names::kNotEqual>)},
    {Py_nb_invert, reinterpret_cast<void*>(unary<Names::kNot>)},
    {Py_nb_negative, reinterpret_cast<void*>(unary<Names::kNeg>)},
    {Py_nb_absolute, reinterpret_cast<void*>(absolute)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {0, nullptr},
};

}  // namespace treenail::python
