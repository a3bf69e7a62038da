// SPDX-License-Identifier: Apache-2.0
// Ops by name, with inputs and attributes given as a list and a dict: immediate execution (execute,
// execute_tensors) and nodes of a graph (create_op).
#include "framework/eager/immediate_options.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/transfer.h"
#include "python/binding/attributes.h"
#include "python/binding/dtypes.h"
#include "python/binding/gil.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/op_call.h"
#include "python/binding/operation_type.h"
#include "python/binding/quick_call.h"
#include "python/binding/tensor_type.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

void set_inputs(OpCall& call, PyObject* inputs, Ref& held) {
  held = inputs == nullptr ? checked(PyTuple_New(0))
                           : checked(PySequence_Fast(inputs, "inputs must be a list"));
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(held.get()));
  if (count != call.def->inputs.size()) {
    std::string names;
    for (const ArgDef& input : call.def->inputs)
      names += concat(names.empty() ? "" : ", ", input.name);
    throw_type_error("op ", call.def->name, " takes ", call.def->inputs.size(), " inputs (", names,
                     "), ", count, " were given");
  }
  for (size_t i = 0; i < count; ++i)
    call.inputs.push_back(PySequence_Fast_GET_ITEM(held.get(), static_cast<Py_ssize_t>(i)));
}

void set_attrs(OpCall& call, PyObject* attrs) {
  if (attrs == nullptr || attrs == Py_None) return;
  if (!PyDict_Check(attrs)) throw_type_error("attrs must be a dict, not ", repr_of(attrs));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(attrs, &position, &key, &value) != 0) {
    const std::string name(text_of(key, "an attribute name"));
    const int index = call.def->attr_index(name);
    if (index < 0) {
      std::string names;
      for (const AttrDef& attr : call.def->attrs)
        names += concat(names.empty() ? "" : ", ", attr.name);
      throw_type_error("op ", call.def->name, " has no attribute '", name, "'; it has: ", names);
    }
    const AttrDef& def = call.def->attrs[static_cast<size_t>(index)];
    with_prefix([&] { return concat("op ", call.def->name, ": "); },
                [&] { call.attrs.emplace_back(name, attr_from_object(value, def)); });
  }
}

const OpDef& op_from(PyObject* name) {
  return OpRegistry::instance().get(text_of(name, "an op name"));
}

// execute(op_name, inputs=(), attrs=None) -> flat list of arrays.
PyObject* run_op(PyObject* const* args, Py_ssize_t nargs, bool arrays) {
  return guarded([&] {
    if (nargs < 1 || nargs > 3)
      throw_type_error("execute() takes an op name, a list of inputs and a dict of attributes");
    OpCall call;
    call.def = &op_from(args[0]);
    call.mode = CallMode::kImmediate;
    Ref held;
    set_inputs(call, nargs > 1 ? args[1] : nullptr, held);
    set_attrs(call, nargs > 2 ? args[2] : nullptr);
    if (!arrays) return call_op(call).release();
    std::vector<Tensor> outputs = execute_op(call);
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(outputs.size())));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool array = is_plain(outputs[i].dtype()) || outputs[i].dtype() == DType::kString;
      Ref object = array ? array_from_tensor(std::move(outputs[i]), false)
                         : new_concrete_tensor(std::move(outputs[i]));
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), object.release());
    }
    return list.release();
  });
}
PyObject* execute_arrays(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return run_op(args, nargs, true);
}
PyObject* execute_tensors(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return run_op(args, nargs, false);
}

// create_op(graph, op_name, inputs, attrs, name, control_inputs) -> Operation
PyObject* create_operation(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 6)
          throw_type_error(
              "create_op() takes graph, op name, inputs, attrs, name and control inputs");
        OpCall call;
        call.graph = graph_from(args[0]);
        call.def = &op_from(args[1]);
        call.mode = CallMode::kGraph;
        Ref held;
        set_inputs(call, args[2], held);
        set_attrs(call, args[3]);
        if (args[4] != Py_None) call.name = text_of(args[4], "name");
        Ref controls = args[5] == Py_None
                           ? checked(PyTuple_New(0))
                           : checked(PySequence_Fast(args[5], "control_inputs must be a list"));
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(controls.get()); ++i) {
          call.control_inputs.push_back(
              node_from(PySequence_Fast_GET_ITEM(controls.get(), i), call.graph));
        }
        return create_op(call).release();
      },
      args[0]);
}

// On the device that the context asks for; int32, which spells shapes and axes mostly, stays in the
// host's memory, as TensorFlow has it.
Ref concrete_constant(const Tensor& value, GraphObject* context) {
  const std::string& request = context->state->context().device;
  if (request.empty()) return new_concrete_tensor(value);
  static const OpDef& def = OpRegistry::instance().get("Const");
  Device* const device = naming_op(def, [&] { return requested_device(request); });
  if (device == nullptr || value.dtype() == DType::kInt32) return new_concrete_tensor(value);
  Tensor there;
  {
    const GilRelease release;
    there = in_memory_of(value, device);
  }
  return new_concrete_tensor(std::move(there));
}

// constant(graph or None, value, dtype or None, shape or None, name or None, any cast allowed)
PyObject* constant(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 5)
      throw_type_error(
          "constant() takes graph, value, dtype, name and whether any cast is allowed");
    GraphObject* graph = args[0] == Py_None ? default_graph() : graph_from(args[0]);
    Ref held = Ref::borrow(as_object(graph));
    const Casting casting =
        checked(PyObject_IsTrue(args[4])) == 1 ? Casting::kAny : Casting::kSafeKind;
    Tensor value = tensor_from_object(args[1], optional_dtype_from(args[2]), casting, false);
    if (graph->state->immediate) return concrete_constant(value, graph).release();
    const std::string_view name =
        args[3] == Py_None ? std::string_view() : text_of(args[3], "name");
    return constant_tensor(graph, std::move(value), name).release();
  });
}

// tensor(value, dtype or None): a concrete Tensor.
PyObject* tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs < 1 || nargs > 2) throw_type_error("tensor() takes a value and optionally a dtype");
    const DType dtype = optional_dtype_from(nargs > 1 ? args[1] : nullptr);
    return new_concrete_tensor(tensor_from_object(args[0], dtype, Casting::kSafeKind, false))
        .release();
  });
}

// to_array(value, dtype or None): what a feed of `value` would hold.
PyObject* to_array(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs < 1 || nargs > 2) throw_type_error("to_array() takes a value and optionally a dtype");
    const DType dtype = optional_dtype_from(nargs > 1 ? args[1] : nullptr);
    return array_from_tensor(tensor_from_object(args[0], dtype, Casting::kSafeKind, false), false)
        .release();
  });
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

}  // namespace

void add_execute(PyObject* module) {
  static PyMethodDef functions[] = {
      {"execute", fast(execute_arrays), METH_FASTCALL,
       "execute(op, inputs=(), attrs=None, /)\n--\n\nRuns one op now and gives its outputs as a "
       "flat list of arrays. A list "
       "argument of the op takes a list. bfloat16 crosses as the uint16 of its bits unless "
       "ml_dtypes is imported: to pass "
       "one, state the type attribute (attrs={'T': 'bfloat16'}) or pass tensor(bits, 'bfloat16')."},
      {"execute_tensors", fast(execute_tensors), METH_FASTCALL,
       "execute_tensors(op, inputs=(), attrs=None, /)\n--\n\nThe same, giving concrete tensors "
       "grouped as the op declares."},
      {"create_op", fast(create_operation), METH_FASTCALL, nullptr},
      {"constant", fast(constant), METH_FASTCALL, nullptr},
      {"tensor", fast(tensor), METH_FASTCALL,
       "tensor(value, dtype=None, /)\n--\n\nA concrete tensor. uint16 with dtype bfloat16 is taken "
       "as bits."},
      {"to_array", fast(to_array), METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, functions);
}

}  // namespace treenail::python
