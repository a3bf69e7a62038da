// SPDX-License-Identifier: Apache-2.0
// Immediate execution for Python: the context, and variables that are nobody's but their holders'.
#include <array>
#include <span>
#include <string>

#include "framework/eager/immediate_options.h"
#include "framework/eager/prepared_call.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/state/variable.h"
#include "python/binding/attributes.h"
#include "python/binding/dtypes.h"
#include "python/binding/graph_type.h"
#include "python/binding/module.h"
#include "python/binding/op_call.h"
#include "python/binding/precision.h"
#include "python/binding/quick_call.h"
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

// set_immediate_options({kind: most devices}, soft placement, device policy)
PyObject* set_options(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 3) throw_type_error("set_immediate_options(device_count, soft, policy)");
    ImmediateOptions options;
    options.device_count = device_count_from(args[0]);
    options.allow_soft_placement = checked(PyObject_IsTrue(args[1])) == 1;
    options.policy = static_cast<DevicePolicy>(checked(static_cast<int>(PyLong_AsLong(args[2]))));
    set_immediate_options(std::move(options));
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

// In the memory of the device that the context asks for; null: the host's.
Device* home_of_new(DType dtype) {
  static const OpDef& def = OpRegistry::instance().get("VarHandleOp");
  const std::string_view request = current_device();
  Device* const device =
      request.empty() ? nullptr : naming_op(def, [&] { return requested_device(request); });
  return is_plain(dtype) ? device : nullptr;
}

// new_variable(name, dtype, shape, trainable): the handle of a variable without a value.
PyObject* new_variable(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 4) throw_type_error("new_variable() takes a name, a dtype, a shape, trainable");
    const DType dtype = dtype_from(args[1]);
    const IntrusivePtr<Variable> variable =
        make_counted<Variable>(std::string(text_of(args[0], "a name")), dtype,
                               shape_from_object(args[2], "shape"), home_of_new(dtype));
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
      if (tapes_record()) note_read(*immediate_value(handle));
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

// concrete_in_graph(graph, tensor, name): what stands for a concrete tensor in that graph.
PyObject* constant_in_graph(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 3 || concrete_value(args[1]) == nullptr)
      throw_type_error("concrete_in_graph() takes a graph, a concrete tensor and a name");
    return concrete_in_graph(graph_from(args[0]), args[1], text_of(args[2], "a name")).release();
  });
}

// What kind of a call this is of a function that is traced once for each kind, as bytes: tensors by
// dtype and shape, plain Python values by themselves. None where an argument is something else.
PyObject* quick_key(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    if (!PyTuple_Check(args) || current_mode() != CallMode::kImmediate) return none();
    std::string key;
    const auto add = [&key](char kind, const void* data, size_t size) {
      key += kind;
      key.append(static_cast<const char*>(data), size);
    };
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* const item = PyTuple_GET_ITEM(args, i);
      if (const Tensor* tensor = concrete_value(item)) {
        const char dtype = static_cast<char>(tensor->dtype());
        const std::span<const int64_t> dims = tensor->shape().dims();
        const size_t rank = dims.size();
        add('T', &dtype, 1);
        add('r', &rank, sizeof(rank));
        key.append(reinterpret_cast<const char*>(dims.data()), dims.size_bytes());
      } else if (PyFloat_CheckExact(item)) {
        const double value = PyFloat_AS_DOUBLE(item);
        add('f', &value, sizeof(value));
      } else if (item == Py_None || PyBool_Check(item)) {
        add(item == Py_None ? 'n' : item == Py_True ? 't' : 'F', nullptr, 0);
      } else if (PyLong_CheckExact(item)) {
        int overflow = 0;
        const int64_t value = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow != 0) return none();
        add('i', &value, sizeof(value));
      } else if (PyUnicode_CheckExact(item)) {
        const std::string_view text = text_of(item, "a text");
        const size_t size = text.size();
        add('s', &size, sizeof(size));
        key += text;
      } else {
        return none();
      }
    }
    const std::string& device = default_graph()->state->context().device;
    key += device;
    const auto precision = static_cast<char>(current_precision());
    add('p', &precision, 1);
    return PyBytes_FromStringAndSize(key.data(), static_cast<Py_ssize_t>(key.size()));
  });
}

// current_value(handle): the value of a variable, whatever the context; no tape sees it.
PyObject* current_value(PyObject*, PyObject* handle) {
  return guarded(
      [&] { return new_concrete_tensor(variable_from(handle_from(handle)).read()).release(); });
}

PyMethodDef functions[] = {
    {"current_value", current_value, METH_O, nullptr},
    {"concrete_in_graph", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(constant_in_graph)),
     METH_FASTCALL, nullptr},
    {"quick_key", quick_key, METH_O, nullptr},
    {"mark_immediate", mark_immediate, METH_O, nullptr},
    {"executing_eagerly", executing_eagerly, METH_NOARGS,
     "executing_eagerly()\n--\n\nWhether operations run at once rather than building a graph."},
    {"set_immediate_options", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(set_options)),
     METH_FASTCALL, nullptr},
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
