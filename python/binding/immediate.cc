// SPDX-License-Identifier: Apache-2.0
// Immediate execution for Python: the context, and variables that are nobody's but their holders'.
#include <array>

#include "framework/eager/prepared_call.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/state/variable.h"
#include "python/binding/attributes.h"
#include "python/binding/dtypes.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/op_call.h"
#include "python/binding/tape_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

const Tensor& handle_from(PyObject* object) {
  const Tensor* const tensor = concrete_value(object);
  if (tensor == nullptr || tensor->dtype() != DType::kResource || tensor->rank() != 0)
    throw_type_error("needed is the handle of a variable of immediate execution, not ",
                     repr_of(object));
  return *tensor;
}

// mark_immediate(graph): with this as the default graph, operations run at once.
PyObject* mark_immediate(PyObject*, PyObject* graph) {
  return guarded([&] {
    graph_from(graph)->state->immediate = true;
    return none();
  });
}

PyObject* executing_eagerly(PyObject*, PyObject*) {
  return guarded([] { return bool_object(current_mode() == CallMode::kImmediate); });
}

PyObject* restart_random(PyObject*, PyObject*) {
  return guarded([] {
    restart_random_counters();
    return none();
  });
}

// The identity of what a handle refers to, as a number; valid while that exists.
PyObject* state_behind(PyObject*, PyObject* handle) {
  return guarded([&] {
    return PyLong_FromVoidPtr(handle_from(handle).data<ResourceElement>()->object.get());
  });
}

// new_variable(name, dtype, shape, trainable): the handle of a variable without a value.
PyObject* new_variable(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 4) throw_type_error("new_variable() takes a name, a dtype, a shape, trainable");
    const IntrusivePtr<Variable> variable =
        make_counted<Variable>(std::string(text_of(args[0], "a name")), dtype_from(args[1]),
                               shape_from_object(args[2], "shape"));
    variable->set_trainable(checked(PyObject_IsTrue(args[3])) == 1);
    Tensor handle(DType::kResource, Shape());
    handle.data<ResourceElement>()->object = variable;
    return new_concrete_tensor(std::move(handle)).release();
  });
}

const OpInstance& read_op(DType dtype) {
  static std::array<OpInstance, 256> instances;
  static std::array<bool, 256> known;
  const auto at = static_cast<uint8_t>(dtype);
  if (!known[at]) {
    const NamedAttr attrs[] = {{"dtype", dtype}};
    const DType types[] = {DType::kResource};
    instances[at] = resolve_op(OpRegistry::instance().get("ReadVariableOp"), types, attrs);
    known[at] = true;
  }
  return instances[at];
}

// read_variable(handle): ReadVariableOp, in a few steps where it runs at once.
PyObject* read_variable(PyObject*, PyObject* handle) {
  return guarded([&] {
    const Variable& variable = variable_from(handle_from(handle));
    if (current_mode() == CallMode::kGraph) {
      OpCall call;
      call.def = &OpRegistry::instance().get("ReadVariableOp");
      call.inputs = {handle};
      call.attrs = {{"dtype", variable.dtype()}};
      return call_op(call).release();
    }
    ImmediateTensor value{variable.read()};
    if (tapes_record()) {
      const ImmediateTensor* const input = immediate_value(handle);
      record_op(read_op(variable.dtype()), {&input, 1}, {&value, 1});
    }
    return new_concrete_tensor(std::move(value)).release();
  });
}

PyMethodDef functions[] = {
    {"mark_immediate", mark_immediate, METH_O, nullptr},
    {"executing_eagerly", executing_eagerly, METH_NOARGS,
     "executing_eagerly()\n--\n\nWhether operations run at once rather than building a graph."},
    {"restart_random_counters", restart_random, METH_NOARGS, nullptr},
    {"state_behind", state_behind, METH_O, nullptr},
    {"new_variable", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(new_variable)),
     METH_FASTCALL, nullptr},
    {"read_variable", read_variable, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_immediate(PyObject* module) { add_methods(module, functions); }

}  // namespace treenail::python
